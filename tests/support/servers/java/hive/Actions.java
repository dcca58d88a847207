import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hive.common.ValidReaderWriteIdList;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.TableValidWriteIds;
import org.apache.hadoop.hive.metastore.security.HadoopThriftAuthBridge;
import org.apache.hadoop.hive.metastore.txn.TxnUtils;
import org.apache.hadoop.hive.ql.metadata.Hive;

/** What a session does besides SQL: one round of a compaction thread, transactions of a client, settings. */
public class Actions {
  private static final String COMPACTOR = "org.apache.hadoop.hive.ql.txn.compactor.";
  private static final List<Thread> RUNNING = new ArrayList<>(); // of the compactor, until they are stopped
  private static final AtomicBoolean NO_MORE = new AtomicBoolean(); // they are to take nothing any more
  private static final Map<String, String> FIRST = new HashMap<>(); // settings, as they were before their change

  /** Change a setting: ``name=value``. */
  public static List<Object> set(HiveConf conf, String setting) {
    String[] parts = setting.split("=", 2);
    String name = parts[0].trim();
    if (!FIRST.containsKey(name)) {
      FIRST.put(name, conf.get(name));
    }
    conf.set(name, parts[1].trim());
    return Collections.emptyList();
  }

  private static void reset(HiveConf conf) {
    for (Map.Entry<String, String> first : FIRST.entrySet()) {
      if (first.getValue() == null) {
        conf.unset(first.getKey());
      } else {
        conf.set(first.getKey(), first.getValue());
      }
    }
    FIRST.clear();
  }

  /** The rows of one action; its name comes first. */
  public static List<Object> run(HiveConf conf, List<String> words) throws Exception {
    IMetaStoreClient client = Hive.get(conf).getMSC();
    switch (words.get(0)) {
      case "round":
        round(conf, words.get(1));
        return Collections.emptyList();
      case "start":
        for (String name : words.subList(1, words.size())) {
          RUNNING.add(prepared(conf, name, RUNNING.size() + 1, NO_MORE));
        }
        RUNNING.forEach(Thread::start);
        return Collections.emptyList();
      case "stop":
        NO_MORE.set(true);
        for (Thread thread : RUNNING) {
          thread.interrupt(); // of its sleep
          thread.join();
        }
        RUNNING.clear();
        NO_MORE.set(false);
        return Collections.emptyList();
      case "reset":
        reset(conf);
        return Collections.emptyList();
      case "serve":
        serve(conf, Integer.parseInt(words.get(1)));
        return Collections.emptyList();
      case "open":
        return row(client.openTxn("tests"));
      case "allocate":
        return row(client.allocateTableWriteId(Long.parseLong(words.get(1)), words.get(2), words.get(3)));
      case "commit":
        client.commitTxn(Long.parseLong(words.get(1)));
        return Collections.emptyList();
      case "abort":
        client.rollbackTxn(Long.parseLong(words.get(1)));
        return Collections.emptyList();
      case "transactions":
        return row(client.getValidTxns());
      case "write-ids":
        return row(writeIds(client, words.get(1)));
      default:
        throw new IllegalArgumentException("no such action: " + words);
    }
  }

  /** The metastore of this very process, for others, on loopback. */
  private static void serve(HiveConf conf, int port) {
    HiveConf own = new HiveConf(conf);
    own.set("metastore.thrift.bind.host", "127.0.0.1");
    own.set("hive.metastore.thrift.bind.host", "127.0.0.1");
    Thread thread = new Thread(() -> {
      try {
        HiveMetaStore.startMetaStore(port, HadoopThriftAuthBridge.getBridge(), own);
      } catch (Throwable error) {
        error.printStackTrace();
      }
    });
    thread.setDaemon(true);
    thread.start();
  }

  private static List<Object> row(Object value) {
    return new ArrayList<>(Arrays.asList(String.valueOf(value)));
  }

  /** The write ids that a reader who comes now may see, as Hive hands them to its tasks. */
  private static String writeIds(IMetaStoreClient client, String table) throws Exception {
    String transactions = client.getValidTxns().toString();
    List<TableValidWriteIds> answer = client.getValidWriteIds(Collections.singletonList(table), transactions);
    ValidReaderWriteIdList ids = (ValidReaderWriteIdList) utilities().getMethod(
        "createValidReaderWriteIdList", TableValidWriteIds.class).invoke(null, answer.get(0));
    return ids.writeToString();
  }

  private static Class<?> utilities() {
    try {
      return Class.forName("org.apache.hadoop.hive.metastore.txn.TxnCommonUtils"); // Hive 4
    } catch (ClassNotFoundException error) {
      return TxnUtils.class;
    }
  }

  /** Let an Initiator, a Worker or a Cleaner look once at what there is to do, and do it. */
  private static void round(HiveConf conf, String name) throws Exception {
    prepared(conf, name, 1, new AtomicBoolean(true)).run();
  }

  private static Thread prepared(HiveConf conf, String name, int number, AtomicBoolean stop) throws Exception {
    Thread thread = (Thread) Class.forName(COMPACTOR + name).getDeclaredConstructor().newInstance();
    for (Method method : thread.getClass().getMethods()) {
      if (method.getName().equals("setThreadId")) {
        method.invoke(thread, number);
      }
    }
    thread.getClass().getMethod("setConf", org.apache.hadoop.conf.Configuration.class).invoke(thread, conf);
    for (Method method : thread.getClass().getMethods()) {
      if (method.getName().equals("init")) {
        Object[] arguments = new Object[method.getParameterCount()];
        Arrays.fill(arguments, new AtomicBoolean()); // of Hive 3: that it looked once
        arguments[0] = stop;
        method.setAccessible(true);
        method.invoke(thread, arguments);
      }
    }
    return thread;
  }
}
