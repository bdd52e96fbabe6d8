import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Publishes numbered messages and consumes them, in a consumer group and in a share group, with default settings.
 *
 * Arguments: bootstrap, topic, group, share group, group protocol. Says what its application sees, a line each:
 * "acknowledged 7", "received 7", "shared 7", "error …". The first line on its standard input ends the producer,
 * which then says "sent"; the second one, or the end of the input, ends the consumers.
 */
public final class ClusterClient {
    private static volatile boolean publishing = true;
    private static volatile boolean consuming = true;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1];
        Thread consumer = new Thread(() -> consume(bootstrap, topic, arguments[2], arguments[4]));
        Thread sharer = new Thread(() -> share(bootstrap, topic, arguments[3]));
        Thread publisher = new Thread(() -> publish(bootstrap, topic));
        for (Thread thread : List.of(consumer, sharer, publisher)) {
            thread.start();
        }
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        input.readLine();
        publishing = false;
        publisher.join();
        say("sent");
        input.readLine();
        consuming = false;
        consumer.join();
        sharer.join();
    }

    private static void publish(String bootstrap, String topic) {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                settings(bootstrap), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; publishing; number++) {
                final int sent = number;
                producer.send(new ProducerRecord<>(topic, Integer.toString(sent)), (where, error) ->
                        say(error == null ? "acknowledged " + sent : "error produce: " + error));
                Thread.sleep(10);
            }
        } catch (Exception error) {
            say("error produce: " + error);
        }
    }

    private static void consume(String bootstrap, String topic, String group, String protocol) {
        Properties settings = settings(bootstrap);
        settings.put("group.id", group);
        settings.put("group.protocol", protocol);
        settings.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (consuming) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    say("received " + record.value());
                }
            }
        } catch (Exception error) {
            say("error consume: " + error);
        }
    }

    private static void share(String bootstrap, String topic, String group) {
        Properties settings = settings(bootstrap);
        settings.put("group.id", group);
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (consuming) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    say("shared " + record.value());
                }
            }
        } catch (Exception error) {
            say("error share: " + error);
        }
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
