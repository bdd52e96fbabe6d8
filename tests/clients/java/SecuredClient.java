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
 * Logs in with a file of properties: `SecuredClient FILE send TOPIC VALUE` sends a message, `SecuredClient FILE quota USER RATE` gives a
 * user a quota and prints all there are.
 */
public class SecuredClient {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]), StandardCharsets.ISO_8859_1)) {
            properties.load(reader);
        }
        if (arguments[1].equals("send")) {
            send(properties, arguments[2], arguments[3]);
        } else {
            quota(properties, arguments[2], Double.parseDouble(arguments[3]));
        }
    }

    private static void send(Properties properties, String topic, String value) throws Exception {
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties, text, text)) {
            System.out.println(producer.send(new ProducerRecord<>(topic, value)).get(30, TimeUnit.SECONDS));
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
