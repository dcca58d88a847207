import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.security.DelegationTokenIdentifier;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;

/**
 * Hive's own clients of metastores. A JSON object on each line of the input is one that connects, with "properties",
 * and "principal" and "keytab", or a delegation "token", or none of them. On a line of the output is what it got, or an
 * "error". A client that logs in by a keytab can ask for a delegation token ("renewer").
 */
public class Clients {
  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
    System.setOut(System.err);
    ObjectMapper json = new ObjectMapper();
    out.println("{}");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      Map<String, Object> answer = new LinkedHashMap<>();
      try {
        answer.putAll(connect(json.readValue(line, Map.class)));
      } catch (Throwable error) {
        error.printStackTrace();
        answer.put("error", said(error));
      }
      out.println(json.writeValueAsString(answer));
    }
    System.exit(0);
  }

  private static Map<String, Object> connect(Map<?, ?> asked) throws Exception {
    Configuration conf = MetastoreConf.newMetastoreConf();
    ((Map<?, ?>) asked.get("properties")).forEach((name, value) -> conf.set((String) name, (String) value));
    UserGroupInformation.setConfiguration(conf);
    return user(asked).doAs((PrivilegedExceptionAction<Map<String, Object>>) () -> {
      HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
      try {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("user", UserGroupInformation.getCurrentUser().getShortUserName());
        answer.put("databases", client.getAllDatabases());
        long transaction = client.openTxn("judge");
        client.rollbackTxn(transaction);
        answer.put("transaction", transaction);
        if (asked.containsKey("renewer")) {
          answer.put("token", client.getDelegationToken(
              UserGroupInformation.getCurrentUser().getShortUserName(), (String) asked.get("renewer")));
        }
        return answer;
      } finally {
        client.close();
      }
    });
  }

  private static UserGroupInformation user(Map<?, ?> asked) throws Exception {
    if (asked.containsKey("keytab")) {
      return UserGroupInformation.loginUserFromKeytabAndReturnUGI(
          (String) asked.get("principal"), (String) asked.get("keytab"));
    }
    UserGroupInformation user = UserGroupInformation.createRemoteUser("nobody");
    if (asked.containsKey("token")) {
      Token<DelegationTokenIdentifier> token = new Token<>();
      token.decodeFromUrlString((String) asked.get("token"));
      user.addToken(token);
    }
    return user;
  }

  private static String said(Throwable error) {
    StringBuilder said = new StringBuilder();
    for (Throwable one = error; one != null; one = one.getCause()) {
      said.append(one).append('\n');
    }
    return said.toString();
  }
}
