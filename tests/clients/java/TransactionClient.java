import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Publishes in transactions, of which every third is aborted, and is fenced by another producer in the end.
 *
 * Arguments: bootstrap, topic (two partitions), transactional id, group, number of transactions. Says a line each:
 * "committed 7", "aborted 8", "fenced ProducerFencedException", and then "read 7" for all that a read_committed
 * consumer finds, and "offset 7", the group's.
 */
public final class TransactionClient {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    public static void main(String[] arguments) {
        String bootstrap = arguments[0], topic = arguments[1], name = arguments[2], group = arguments[3];
        int transactions = Integer.parseInt(arguments[4]);
        TopicPartition first = new TopicPartition(topic, 0), second = new TopicPartition(topic, 1);
        try (KafkaProducer<String, String> producer = producer(bootstrap, name);
                KafkaProducer<String, String> rival = producer(bootstrap, name)) {
            producer.initTransactions();
            for (int number = 0; number < transactions; number++) {
                write(producer, topic, number);
                producer.sendOffsetsToTransaction(
                        Map.of(first, new OffsetAndMetadata(number)), new ConsumerGroupMetadata(group));
                if (number % 3 == 2) {
                    producer.abortTransaction();
                    System.out.println("aborted " + number);
                } else {
                    producer.commitTransaction();
                    System.out.println("committed " + number);
                }
            }
            write(producer, topic, transactions);
            producer.flush();
            rival.initTransactions();
            try {
                producer.commitTransaction();
                System.out.println("committed " + transactions);
            } catch (KafkaException error) {
                System.out.println("fenced " + error.getClass().getSimpleName());
            }
            write(rival, topic, transactions + 1);
            rival.commitTransaction();
            System.out.println("committed " + (transactions + 1));
        }
        read(bootstrap, group, first, second);
    }

    private static void write(KafkaProducer<String, String> producer, String topic, int number) {
        producer.beginTransaction();
        for (int partition = 0; partition < 2; partition++) {
            producer.send(new ProducerRecord<>(topic, partition, null, Integer.toString(number)));
        }
    }

    private static void read(String bootstrap, String group, TopicPartition first, TopicPartition second) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> both = List.of(first, second);
            consumer.assign(both);
            consumer.seekToBeginning(both);
            Map<TopicPartition, Long> ends = consumer.endOffsets(both, LIMIT);
            long deadline = System.nanoTime() + LIMIT.toNanos();
            while (both.stream().anyMatch(where -> consumer.position(where) < ends.get(where))
                    && System.nanoTime() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println("read " + record.value());
                }
            }
            System.out.println("offset " + consumer.committed(java.util.Set.of(first), LIMIT).get(first).offset());
        }
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String name) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", name);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }
}
