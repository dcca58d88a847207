import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * What Hive's own classes say, of 2.3, 3.1 or 4: of the transactions and write ids of a metastore, and of its interface.
 * A JSON object on each line of the input, one on each line of the output. Classes that a version lacks, or that are
 * elsewhere in it, are looked for by name.
 */
public class Judge {
  private static final String HIVE = "org.apache.hadoop.hive.";
  private static final String API = HIVE + "metastore.api.";
  private static Object client;

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
    System.setOut(System.err);
    ObjectMapper json = new ObjectMapper();
    out.println("{}");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      Map<String, Object> answer = new LinkedHashMap<>();
      try {
        answer(json.readValue(line, Map.class), answer);
      } catch (Throwable error) {
        error.printStackTrace();
        answer.put("error", String.valueOf(error));
      }
      out.println(json.writeValueAsString(answer));
    }
    System.exit(0);
  }

  @SuppressWarnings("unchecked")
  private static void answer(Map<String, Object> asked, Map<String, Object> answer) throws Exception {
    if (asked.containsKey("connect")) {
      connect((Map<String, String>) asked.get("connect"));
    }
    if (asked.containsKey("tables")) {
      lists((List<String>) asked.get("tables"), (List<List<Number>>) asked.get("ranges"), answer);
    }
    if (asked.containsKey("methods")) {
      answer.putAll(methods((List<String>) asked.get("methods")));
    }
  }

  // -- lists -----------------------------------------------------------------------------------------------------

  private static void connect(Map<String, String> properties) throws Exception {
    Class<?> settings = find(HIVE + "metastore.conf.MetastoreConf", HIVE + "conf.HiveConf");
    Object conf = settings.getSimpleName().equals("HiveConf")
        ? settings.getDeclaredConstructor().newInstance()
        : settings.getMethod("newMetastoreConf").invoke(null);
    for (Map.Entry<String, String> one : properties.entrySet()) {
      conf.getClass().getMethod("set", String.class, String.class).invoke(conf, one.getKey(), one.getValue());
    }
    Class<?> type = Class.forName(HIVE + "metastore.HiveMetaStoreClient");
    if (client != null) {
      call(client, "close");
    }
    try {
      client = type.getConstructor(conf.getClass()).newInstance(conf);
    } catch (NoSuchMethodException error) {
      client = type.getConstructor(Class.forName("org.apache.hadoop.conf.Configuration")).newInstance(conf);
    }
  }

  /** What readers, compactors and cleaners are told now; and what each list says of ranges of ids. */
  private static void lists(List<String> tables, List<List<Number>> ranges, Map<String, Object> answer)
      throws Exception {
    Object everyone = call(client, "getValidTxns");
    Object txns = everyone;
    try {
      Class<?> type = Class.forName(API + "TxnType");
      Method but = client.getClass().getMethod("getValidTxns", long.class, List.class);
      txns = but.invoke(client, 0L, Collections.singletonList(type.getField("READ_ONLY").get(null)));
      everyone = but.invoke(client, 0L, Collections.emptyList()); // the call without types leaves those out, too
    } catch (ReflectiveOperationException | LinkageError error) {
      // before Hive 4 there are no types
    }
    answer.put("txns", written(txns));
    answer.put("least", call(everyone, "getMinOpenTxn"));
    Map<String, Object> found = new LinkedHashMap<>();
    answer.put("lists", found);
    if (tables.isEmpty()) { // Hive 2
      Object info = call(client, "showTxns");
      Object compactor = made("createValidCompactTxnList", info);
      found.put("", Collections.singletonMap("compactor", Collections.singletonMap("text", written(compactor))));
      return;
    }
    List<?> ids = (List<?>) client.getClass().getMethod("getValidWriteIds", List.class, String.class).invoke(
        client, tables, written(txns));
    for (Object one : ids) {
      Object reader = made("createValidReaderWriteIdList", one);
      Map<String, Object> lists = new LinkedHashMap<>();
      lists.put("reader", said(reader, ranges));
      lists.put("compactor", said(made("createValidCompactWriteIdList", one), ranges));
      try {
        Class<?> type = Class.forName(HIVE + "common.ValidCleanerWriteIdList");
        Object cleaner = type.getConstructor(reader.getClass()).newInstance(reader);
        lists.put("cleaner", said(cleaner, ranges));
      } catch (ClassNotFoundException error) {
        // Hive 3's cleaner has a reader's list
      }
      found.put((String) call(one, "getFullTableName"), lists);
    }
  }

  private static Object made(String method, Object of) throws Exception {
    try {
      return Class.forName(HIVE + "metastore.txn.TxnUtils").getMethod(method, of.getClass()).invoke(null, of);
    } catch (NoSuchMethodException error) {
      return Class.forName(HIVE + "metastore.txn.TxnCommonUtils").getMethod(method, of.getClass()).invoke(null, of);
    }
  }

  private static Map<String, Object> said(Object list, List<List<Number>> ranges) throws Exception {
    Map<String, Object> said = new LinkedHashMap<>();
    said.put("text", written(list));
    List<Object> answers = new ArrayList<>();
    for (List<Number> range : ranges) {
      long low = range.get(0).longValue();
      long high = range.get(1).longValue();
      answers.add(Arrays.asList(
          String.valueOf(of(list, "isWriteIdRangeValid", low, high)),
          String.valueOf(of(list, "isWriteIdRangeAborted", low, high)),
          of(list, "isWriteIdValid", low),
          of(list, "isWriteIdAborted", low),
          of(list, "isValidBase", low)));
    }
    said.put("ranges", answers);
    return said;
  }

  private static Object of(Object list, String method, long... ids) throws Exception {
    Class<?>[] types = new Class<?>[ids.length];
    Arrays.fill(types, long.class);
    Object[] values = Arrays.stream(ids).boxed().toArray();
    return list.getClass().getMethod(method, types).invoke(list, values);
  }

  private static String written(Object list) throws Exception {
    return (String) call(list, "writeToString");
  }

  // -- the interface ---------------------------------------------------------------------------------------------

  /** Methods with all structs that they need: fields by number, each with its name and its type. */
  private static Map<String, Object> methods(List<String> names) throws Exception {
    Map<String, Object> structs = new TreeMap<>();
    Map<String, Object> enums = new TreeMap<>();
    Map<String, Object> methods = new TreeMap<>();
    Deque<Class<?>> left = new ArrayDeque<>();
    Function<Class<?>, Map<String, Object>> fields = type -> {
      try {
        return fields(type, left, enums);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException(error);
      }
    };
    for (String name : names) {
      try {
        String service = API + "ThriftHiveMetastore$";
        if (!exists(service + name + "_args")) {
          service = "com.facebook.fb303.FacebookService$";
        }
        methods.put(name, Arrays.asList(
            fields.apply(Class.forName(service + name + "_args")),
            fields.apply(Class.forName(service + name + "_result"))));
      } catch (ClassNotFoundException error) {
        // this version does not have it
      }
    }
    for (Class<?> type; (type = left.poll()) != null; ) {
      if (!structs.containsKey(type.getSimpleName())) {
        structs.put(type.getSimpleName(), fields.apply(type));
      }
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("methods", methods);
    answer.put("structs", structs);
    answer.put("enums", enums);
    return answer;
  }

  private static Map<String, Object> fields(Class<?> type, Deque<Class<?>> left, Map<String, Object> enums)
      throws ReflectiveOperationException {
    Map<String, Object> fields = new LinkedHashMap<>();
    Field data = type.getField("metaDataMap");
    for (Map.Entry<?, ?> one : ((Map<?, ?>) data.get(null)).entrySet()) {
      String number = String.valueOf(call(one.getKey(), "getThriftFieldId"));
      String name = (String) call(one.getKey(), "getFieldName");
      Object value = one.getValue().getClass().getField("valueMetaData").get(one.getValue());
      String exception = exception(type, name); // of which Hive 3's data tell no more than that it is a struct
      fields.put(number, Arrays.asList(
          name, exception.isEmpty() ? type(value, left, enums) : Arrays.asList("STRUCT", exception)));
    }
    return fields;
  }

  private static String exception(Class<?> type, String field) {
    return Arrays.stream(type.getDeclaredFields())
        .filter(one -> one.getName().equals(field) && Throwable.class.isAssignableFrom(one.getType()))
        .map(one -> one.getType().getSimpleName())
        .findFirst()
        .orElse("");
  }

  /** A type as text and lists: ``I64``, ``["LIST", "I64"]``, ``["STRUCT", "TxnInfo"]``, ``["ENUM", "TxnState"]``. */
  private static Object type(Object data, Deque<Class<?>> left, Map<String, Object> enums)
      throws ReflectiveOperationException {
    byte code = data.getClass().getField("type").getByte(data);
    switch (data.getClass().getSimpleName()) {
      case "StructMetaData":
        Class<?> struct = (Class<?>) data.getClass().getField("structClass").get(data);
        left.add(struct);
        return Arrays.asList("STRUCT", struct.getSimpleName());
      case "EnumMetaData":
        Class<?> constants = (Class<?>) data.getClass().getField("enumClass").get(data);
        Map<String, Object> values = new LinkedHashMap<>();
        for (Object one : constants.getEnumConstants()) {
          values.put(String.valueOf(one), call(one, "getValue"));
        }
        enums.put(constants.getSimpleName(), values);
        return Arrays.asList("ENUM", constants.getSimpleName());
      case "ListMetaData":
      case "SetMetaData":
        return Arrays.asList(code == 15 ? "LIST" : "SET", type(data.getClass().getField("elemMetaData").get(data), left, enums));
      case "MapMetaData":
        return Arrays.asList(
            "MAP",
            type(data.getClass().getField("keyMetaData").get(data), left, enums),
            type(data.getClass().getField("valueMetaData").get(data), left, enums));
      default:
        if (code == 12) { // declared later than it is used: by its name only
          Class<?> later = Class.forName(API + call(data, "getTypedefName"));
          left.add(later);
          return Arrays.asList("STRUCT", later.getSimpleName());
        }
        boolean binary = (Boolean) call(data, "isBinary");
        return binary ? "BINARY" : Arrays.asList("", "", "BOOL", "BYTE", "DOUBLE", "", "I16", "", "I32", "", "I64", "STRING")
            .get(code);
    }
  }

  // -- reflection ------------------------------------------------------------------------------------------------

  private static Class<?> find(String... names) throws ClassNotFoundException {
    for (String name : names) {
      if (exists(name)) {
        return Class.forName(name);
      }
    }
    throw new ClassNotFoundException(String.join(", ", names));
  }

  private static boolean exists(String name) {
    try {
      Class.forName(name);
      return true;
    } catch (ClassNotFoundException error) {
      return false;
    }
  }

  private static Object call(Object on, String name) throws ReflectiveOperationException {
    Method method = on.getClass().getMethod(name);
    method.setAccessible(true);
    try {
      return method.invoke(on);
    } catch (InvocationTargetException error) {
      throw new IllegalStateException(error.getCause());
    }
  }
}
