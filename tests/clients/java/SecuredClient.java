import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Logs in with a file of properties: `SecuredClient FILE send TOPIC VALUE [SECONDS]` sends a message, or as many as it
 * can for so long, `SecuredClient FILE quota USER RATE` gives a
 * user a quota and prints all there are.
 */
public class SecuredClient {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]), StandardCharsets.ISO_8859_1)) {
            properties.load(reader);
        }
        if (arguments[1].equals("send")) {
            long seconds = arguments.length > 4 ? Long.parseLong(arguments[4]) : 0;
            send(properties, arguments[2], arguments[3], seconds);
        } else {
            quota(properties, arguments[2], Double.parseDouble(arguments[3]));
        }
    }

    private static void send(Properties properties, String topic, String value, long seconds) throws Exception {
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties, text, text)) {
            long ends = 0;
            do {
                System.out.println(producer.send(new ProducerRecord<>(topic, value)).get(30, TimeUnit.SECONDS));
                ends = ends == 0 ? System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds) : ends;
            } while (System.nanoTime() < ends);
        }
    }

    private static void quota(Properties properties, String user, double rate) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, user));
        ClientQuotaAlteration.Op op = new ClientQuotaAlteration.Op("producer_byte_rate", rate);
        try (Admin admin = Admin.create(properties)) {
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(op)))).all().get(30, TimeUnit.SECONDS);
            System.out.println(admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get(30, TimeUnit.SECONDS));
        }
    }
}
