package acidctl;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.internal.connector.SupportsMetadata;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * An optimizer rule: a scan of the Python source `hive_acid` reads the columns, and the fields of structs, that the
 * plan above it uses, knows the filters above it, and counts rows where nothing else is asked for.
 *
 * What it settles goes to Python in the metadata of the scan's schema, under the key `acidctl` of a field: `path` of a
 * field inside of a struct; `is`: `row` for a column of no values, `count` for one row with the number of rows; in the
 * first field `where`, conditions that Spark applies itself all the same, and `all`, a schema that is still to be checked. `reading.py` and `filters.py`
 * beside this file read it. The plan's own expressions change only where a field has become a column, and count(*) a sum of counts.
 *
 * Its scans hand over batches of columns where `handOver` was told how; see `ArrowColumns.java`.
 *
 * Compiled by Janino: no lambdas, no generics. Where Spark's versions differ members are found by reflection.
 */
public class Pruning extends Rule {
  private static final String KEY = "acidctl";
  private static final int MOST_VALUES = 1000;
  private static final int SHOWN = 300;

  private volatile String problem = "";
  private volatile UnaryOperator columns;

  /** Whether scans hand over batches of columns, by `columns`, or rows. */
  public boolean handsOver() {
    return columns != null;
  }

  public UnaryOperator columns() {
    return columns;
  }

  /** Takes what makes of a scan's plan the same that hands over batches of columns. */
  public void handOver(UnaryOperator columns) {
    this.columns = columns;
  }

  /** What went wrong last; the plan then stayed as it was. */
  public String problem() {
    return problem;
  }

  public TreeNode apply(TreeNode plan) {
    try {
      return prune((LogicalPlan) plan);
    } catch (Throwable error) {
      problem = String.valueOf(error);
      return plan;
    }
  }

  private LogicalPlan prune(LogicalPlan plan) throws Exception {
    LogicalPlan top = plan instanceof Project || plan instanceof Aggregate ? plan : null;
    LogicalPlan below = top == null ? plan : (LogicalPlan) top.children().apply(0);
    if (isCount(top) && below instanceof Project && ((Project) below).projectList().isEmpty()) {
      LogicalPlan counted = (LogicalPlan) below.children().apply(0);
      if (counted instanceof DataSourceV2ScanRelation) below = counted;
    }
    List filters = new ArrayList();
    while (below instanceof Filter) {
      filters.add(0, below);
      below = (LogicalPlan) below.children().apply(0);
    }
    if (below instanceof DataSourceV2ScanRelation) {
      DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) below;
      boolean isOurs = relation.scan() instanceof PythonScan && "hive_acid".equals(get(relation.scan(), "shortName"));
      // Of a schema without columns the rows are counted all the same, and nothing can be left away.
      isOurs &= !relation.output().isEmpty();
      return isOurs ? pruned(top, filters, relation) : plan;
    }
    List children = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < plan.children().size(); i++) {
      LogicalPlan child = (LogicalPlan) plan.children().apply(i);
      LogicalPlan now = prune(child);
      changed |= now != child;
      children.add(now);
    }
    return changed ? over(plan, children) : plan;
  }

  /** The plan from `top` (may be null: all columns are wanted) to the scan; `filters` lie between, the lowest first. */
  private LogicalPlan pruned(LogicalPlan top, List filters, DataSourceV2ScanRelation relation) throws Exception {
    Uses uses = new Uses(relation);
    for (int i = 0; i < filters.size(); i++) uses.add((LogicalPlan) filters.get(i));
    if (top != null) uses.add(top);
    boolean all = top == null;
    PythonScan old = (PythonScan) relation.scan();
    StructType schema = old.readSchema();
    List output = new ArrayList();
    List fields = new ArrayList();
    Map taken = new HashMap(); // attributes in place of fields, by path
    Map names = new HashMap(); // of the columns by which filters may leave something out
    for (int i = 0; i < relation.output().size(); i++) {
      AttributeReference one = (AttributeReference) relation.output().apply(i);
      Long id = Long.valueOf(one.exprId().id());
      if (all || uses.whole.contains(id)) {
        output.add(one);
        fields.add(schema.apply(i));
        names.put(id, schema.apply(i).name());
        continue;
      }
      Map paths = (Map) uses.paths.get(id);
      if (paths == null) continue;
      for (Object key : paths.keySet()) {
        if (hasPrefix(paths, (List) key)) continue;
        GetStructField use = (GetStructField) paths.get(key);
        String[] path = (String[]) ((List) key).toArray(new String[0]);
        AttributeReference field = attribute(String.join(".", path), use.dataType());
        taken.put(id + ":" + key, field);
        output.add(field);
        fields.add(field(field, new MetadataBuilder().putStringArray("path", path)));
      }
    }
    String counted = "";
    if (output.isEmpty()) {
      boolean counts = filters.isEmpty() && isCount(top);
      AttributeReference only = counts ? attribute("_count", DataTypes.LongType) : attribute("_row", DataTypes.BooleanType);
      output.add(only);
      fields.add(field(only, new MetadataBuilder().putString("is", counts ? "count" : "row")));
      if (counts) {
        top = (LogicalPlan) top.mapExpressions(new Counts(only));
        counted = ", counts rows";
      }
    }
    List where = new ArrayList();
    StringBuilder shown = new StringBuilder();
    for (int i = 0; i < filters.size(); i++) {
      Expression condition = ((Filter) filters.get(i)).condition();
      if (!condition.deterministic()) break; // what lies above may depend on which rows came by here
      conjuncts(condition, names, where, shown);
    }
    StructField first = (StructField) fields.get(0);
    Metadata own = first.metadata().contains(KEY) ? first.metadata().getMetadata(KEY) : Metadata.empty();
    MetadataBuilder note = new MetadataBuilder().withMetadata(own);
    if (!where.isEmpty()) note.putMetadataArray("where", (Metadata[]) where.toArray(new Metadata[0]));
    // A schema of the user's own, at which Python has not looked yet.
    if (get(get(old, "ds"), "dataSourceInPython") == null) note.putString("all", schema.json());
    fields.set(0, new StructField(first.name(), first.dataType(), first.nullable(), noted(first.metadata(), note)));
    StructType asked = new StructType((StructField[]) fields.toArray(new StructField[0]));
    boolean nothing = output.size() == 1 && uses.isEmpty() && !all;
    String text = "reads " + (nothing ? 0 : output.size()) + " of " + relation.output().size() + " columns" + counted;
    if (shown.length() > 0) {
      text += ", leaves out by " + (shown.length() > SHOWN ? shown.substring(0, SHOWN) + "..." : shown.toString());
    }
    LogicalPlan plan = withScan(relation, new PrunedScan(copy(old, asked), text, columns), output);
    Fields replace = new Fields(taken);
    for (int i = 0; i < filters.size(); i++) plan = onto((LogicalPlan) filters.get(i), plan, replace);
    return top == null ? plan : onto(top, plan, replace);
  }

  private static LogicalPlan onto(LogicalPlan plan, LogicalPlan child, Fields replace) {
    List children = new ArrayList();
    children.add(child);
    return (LogicalPlan) over(plan, children).mapExpressions(replace);
  }

  private static LogicalPlan over(LogicalPlan plan, List children) {
    return (LogicalPlan) plan.withNewChildren(seq(children));
  }

  private static LogicalPlan withScan(DataSourceV2ScanRelation relation, Scan scan, List output) {
    Object[] args = new Object[relation.productArity()];
    for (int i = 0; i < args.length; i++) {
      String name = relation.productElementName(i);
      args[i] = name.equals("scan") ? scan : name.equals("output") ? seq(output) : relation.productElement(i);
    }
    return (LogicalPlan) relation.makeCopy(args);
  }

  /** The same scan of another schema, with a planner in Python of its own: Spark's keeps what it planned. */
  private static Scan copy(PythonScan old, StructType asked) throws Exception {
    PythonDataSourceV2 source = new PythonDataSourceV2();
    Field[] own = PythonDataSourceV2.class.getDeclaredFields();
    for (int i = 0; i < own.length; i++) {
      if (Modifier.isStatic(own[i].getModifiers()) || own[i].getName().equals("readInfo")) continue;
      own[i].setAccessible(true);
      own[i].set(source, own[i].get(get(old, "ds")));
    }
    // A Scala class has its constructor's parameters as fields, in the same order.
    Constructor make = PythonScan.class.getDeclaredConstructors()[0];
    Field[] given = PythonScan.class.getDeclaredFields();
    Object[] args = new Object[make.getParameterTypes().length];
    int at = 0;
    for (int i = 0; i < given.length; i++) {
      if (Modifier.isStatic(given[i].getModifiers()) || given[i].getName().startsWith("bitmap$")) continue;
      given[i].setAccessible(true);
      String name = given[i].getName();
      args[at++] = name.equals("ds") ? source : name.equals("outputSchema") ? asked : given[i].get(old);
    }
    if (at != args.length) throw new IllegalStateException("PythonScan of this Spark is made of other parts");
    make.setAccessible(true);
    Scan scan = (Scan) make.newInstance(args);
    if (!scan.readSchema().equals(asked)) throw new IllegalStateException("PythonScan of this Spark has its own schema");
    return scan;
  }

  private static Object get(Object of, String name) throws Exception {
    Field field = of.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  private static scala.collection.immutable.Seq seq(List list) {
    return scala.jdk.javaapi.CollectionConverters.asScala(list).toIndexedSeq();
  }

  private static AttributeReference attribute(String name, DataType type) {
    scala.collection.immutable.Seq qualifier = seq(new ArrayList());
    return new AttributeReference(name, type, true, Metadata.empty(), NamedExpression$.MODULE$.newExprId(), qualifier);
  }

  private static StructField field(AttributeReference of, MetadataBuilder note) {
    return new StructField(of.name(), of.dataType(), true, noted(Metadata.empty(), note));
  }

  private static Metadata noted(Metadata others, MetadataBuilder note) {
    return new MetadataBuilder().withMetadata(others).putMetadata(KEY, note.build()).build();
  }

  private static boolean hasPrefix(Map paths, List path) {
    for (int i = 1; i < path.size(); i++) if (paths.containsKey(path.subList(0, i))) return true;
    return false;
  }

  // --- what is used ---------------------------------------------------------------------------------------------

  /** The columns that expressions use whole, and the fields of structs that they use: by path the expression. */
  private static class Uses {
    final Set whole = new HashSet();
    final Map paths = new HashMap();
    private final Map columns = new HashMap();
    private final Set names = new HashSet();
    private final Map joined = new HashMap(); // paths by their names with dots between

    Uses(DataSourceV2ScanRelation relation) {
      for (int i = 0; i < relation.output().size(); i++) {
        AttributeReference one = (AttributeReference) relation.output().apply(i);
        columns.put(Long.valueOf(one.exprId().id()), one);
        names.add(one.name().toLowerCase());
      }
    }

    boolean isEmpty() {
      return whole.isEmpty() && paths.isEmpty();
    }

    void add(LogicalPlan plan) {
      for (int i = 0; i < plan.expressions().size(); i++) add((Expression) plan.expressions().apply(i));
    }

    private void add(Expression one) {
      if (one instanceof AttributeReference) {
        keep((AttributeReference) one);
        return;
      }
      if (one instanceof PlanExpression) {
        scala.collection.Iterator inside = one.references().iterator();
        while (inside.hasNext()) keep((Attribute) inside.next());
      }
      Attribute column = root(one);
      List path = column == null ? null : path(one);
      if (path != null && columns.containsKey(Long.valueOf(column.exprId().id()))) {
        Long id = Long.valueOf(column.exprId().id());
        String name = String.join(".", (String[]) path.toArray(new String[0])).toLowerCase();
        Object other = joined.put(name, path);
        if (names.contains(name) || (other != null && !other.equals(path))) {
          keep(column);
          return;
        }
        if (!paths.containsKey(id)) paths.put(id, new LinkedHashMap());
        ((Map) paths.get(id)).put(path, one);
        return;
      }
      for (int i = 0; i < one.children().size(); i++) add((Expression) one.children().apply(i));
    }

    private void keep(Attribute column) {
      whole.add(Long.valueOf(column.exprId().id()));
    }
  }

  /** The column of which an expression is a field of a field; null when it is none. */
  private static Attribute root(Expression one) {
    if (!(one instanceof GetStructField)) return null;
    Expression child = ((GetStructField) one).child();
    return child instanceof AttributeReference ? (Attribute) child : root(child);
  }

  /** Names from the column down; null where a name does not tell which field is meant, or Hive's type has none. */
  private static List path(Expression one) {
    if (one instanceof AttributeReference) {
      List first = new ArrayList();
      String name = ((AttributeReference) one).name();
      if (name.indexOf('.') >= 0) return null;
      first.add(name);
      return first;
    }
    GetStructField use = (GetStructField) one;
    List path = path(use.child());
    if (path == null || !(use.child().dataType() instanceof StructType)) return null;
    StructField[] fields = ((StructType) use.child().dataType()).fields();
    // What the source shows of a union, and of a struct without fields, is not there under these names.
    if (fields[0].name().equals("_empty") || (fields[0].name().equals("tag") && fields[0].dataType() == DataTypes.ByteType)) {
      return null;
    }
    String name = fields[use.ordinal()].name();
    for (int i = 0; i < fields.length; i++) {
      if (i != use.ordinal() && fields[i].name().equalsIgnoreCase(name)) return null;
    }
    path.add(name);
    return path;
  }

  /** Puts columns in the place of fields. */
  private static class Fields extends scala.runtime.AbstractFunction1 {
    private final Map taken;

    Fields(Map taken) {
      this.taken = taken;
    }

    public Object apply(Object given) {
      Expression one = (Expression) given;
      Attribute column = taken.isEmpty() ? null : root(one);
      Object field = column == null ? null : taken.get(column.exprId().id() + ":" + path(one));
      return field != null ? field : taken.isEmpty() ? one : onChildren(one, this);
    }
  }

  private static Expression onChildren(Expression one, scala.runtime.AbstractFunction1 change) {
    List children = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < one.children().size(); i++) {
      Object child = one.children().apply(i);
      Object now = change.apply(child);
      changed |= now != child;
      children.add(now);
    }
    return changed ? (Expression) one.withNewChildren(seq(children)) : one;
  }

  // --- counting -------------------------------------------------------------------------------------------------

  /** Whether a plan asks for nothing but the number of rows below it. */
  private static boolean isCount(LogicalPlan plan) {
    if (!(plan instanceof Aggregate) || !((Aggregate) plan).groupingExpressions().isEmpty()) return false;
    for (int i = 0; i < plan.expressions().size(); i++) {
      if (!isCount((Expression) plan.expressions().apply(i))) return false;
    }
    return true;
  }

  private static boolean isCount(Expression one) {
    if (one instanceof PlanExpression) return false;
    if (one instanceof AggregateExpression) {
      AggregateExpression call = (AggregateExpression) one;
      if (!(call.aggregateFunction() instanceof Count) || call.isDistinct() || call.filter().isDefined()) return false;
      one = call.aggregateFunction();
      for (int i = 0; i < one.children().size(); i++) {
        Object child = one.children().apply(i);
        if (!(child instanceof Literal) || ((Literal) child).value() == null) return false;
      }
      return true;
    }
    for (int i = 0; i < one.children().size(); i++) {
      if (!isCount((Expression) one.children().apply(i))) return false;
    }
    return true;
  }

  /** Puts a sum of counts in the place of each count. */
  private static class Counts extends scala.runtime.AbstractFunction1 {
    private final AttributeReference counts;

    Counts(AttributeReference counts) {
      this.counts = counts;
    }

    public Object apply(Object given) {
      if (!(given instanceof AggregateExpression)) return onChildren((Expression) given, this);
      List parts = new ArrayList();
      parts.add(new Sum(counts).toAggregateExpression());
      parts.add(Literal$.MODULE$.apply(Long.valueOf(0)));
      return new Coalesce(seq(parts));
    }
  }

  // --- conditions -----------------------------------------------------------------------------------------------

  /** Those parts of a condition that can be told to Python, all of which every row must meet. */
  private static void conjuncts(Expression one, Map names, List to, StringBuilder shown) {
    if (one instanceof And) {
      conjuncts((Expression) one.children().apply(0), names, to, shown);
      conjuncts((Expression) one.children().apply(1), names, to, shown);
      return;
    }
    Metadata told = told(one, names);
    if (told == null) return;
    to.add(told);
    if (shown.length() <= SHOWN) shown.append(shown.length() > 0 ? " AND " : "").append(one.toString());
  }

  /** A condition for Python, which means exactly the same; null where there is none. */
  private static Metadata told(Expression one, Map names) {
    if (one instanceof And || one instanceof Or || one instanceof Not) {
      Metadata[] parts = new Metadata[one.children().size()];
      for (int i = 0; i < parts.length; i++) {
        parts[i] = told((Expression) one.children().apply(i), names);
        if (parts[i] == null) return null;
      }
      String name = one instanceof And ? "and" : one instanceof Or ? "or" : "not";
      return new MetadataBuilder().putString("op", name).putMetadataArray("parts", parts).build();
    }
    if (one instanceof AttributeReference) return compared("=", one, Boolean.TRUE, names);
    if (one instanceof IsNull || one instanceof IsNotNull) {
      MetadataBuilder note = about((Expression) one.children().apply(0), names);
      return note == null ? null : note.putString("op", one instanceof IsNull ? "null" : "not null").build();
    }
    if (one instanceof In || one instanceof InSet) return inList(one, names);
    if (!(one instanceof BinaryComparison)) return null;
    Expression left = (Expression) one.children().apply(0), right = (Expression) one.children().apply(1);
    boolean turned = left instanceof Literal;
    String sign = sign(one, turned);
    Expression value = turned ? left : right;
    if (sign == null || !(value instanceof Literal)) return null;
    return compared(sign, turned ? right : left, ((Literal) value).value(), names);
  }

  private static String sign(Expression one, boolean turned) {
    if (one instanceof EqualTo) return "=";
    if (one instanceof EqualNullSafe) return "<=>";
    if (one instanceof LessThan) return turned ? ">" : "<";
    if (one instanceof LessThanOrEqual) return turned ? ">=" : "<=";
    if (one instanceof GreaterThan) return turned ? "<" : ">";
    if (one instanceof GreaterThanOrEqual) return turned ? "<=" : ">=";
    return null;
  }

  private static Metadata inList(Expression one, Map names) {
    List values = new ArrayList();
    if (one instanceof InSet) {
      scala.collection.Iterator all = ((InSet) one).hset().iterator();
      while (all.hasNext()) values.add(all.next());
    } else {
      for (int i = 1; i < one.children().size(); i++) {
        if (!(one.children().apply(i) instanceof Literal)) return null;
        values.add(((Literal) one.children().apply(i)).value());
      }
    }
    return values.size() > MOST_VALUES ? null : listed("in", (Expression) one.children().apply(0), values, names);
  }

  private static Metadata compared(String sign, Expression column, Object value, Map names) {
    List values = new ArrayList();
    values.add(value);
    return value == null ? null : listed(sign, column, values, names);
  }

  private static Metadata listed(String sign, Expression column, List values, Map names) {
    MetadataBuilder note = about(column, names);
    if (note == null) return null;
    List texts = new ArrayList();
    for (int i = 0; i < values.size(); i++) {
      if (values.get(i) == null) continue; // NULL in a list makes no row meet the condition
      String text = text(column.dataType(), values.get(i));
      if (text == null) return null;
      texts.add(text);
    }
    return note.putString("op", sign).putStringArray("values", (String[]) texts.toArray(new String[0])).build();
  }

  private static MetadataBuilder about(Expression column, Map names) {
    if (!(column instanceof AttributeReference)) return null;
    Object name = names.get(Long.valueOf(((AttributeReference) column).exprId().id()));
    if (name == null) return null;
    return new MetadataBuilder().putString("column", (String) name).putString("type", column.dataType().typeName());
  }

  /** A value as text: numbers, days and microseconds since 1970, the words themselves; null for types left alone. */
  private static String text(DataType type, Object value) {
    boolean isNumber = type == DataTypes.ByteType || type == DataTypes.ShortType || type == DataTypes.IntegerType;
    isNumber |= type == DataTypes.LongType || type == DataTypes.BooleanType || type == DataTypes.DateType;
    isNumber |= type == DataTypes.TimestampNTZType || type instanceof DecimalType;
    if (isNumber) return String.valueOf(value);
    if (type != DataTypes.StringType || !(value instanceof UTF8String)) return null;
    String text = value.toString();
    return UTF8String.fromString(text).equals(value) ? text : null; // not all bytes are text
  }

  // --- the scan -------------------------------------------------------------------------------------------------

  /** Spark's scan, and what EXPLAIN says of it. */
  private static class PrunedScan implements Scan, SupportsMetadata {
    private final Scan scan;
    private final String text;
    private final UnaryOperator columns;

    PrunedScan(Scan scan, String text, UnaryOperator columns) {
      this.scan = scan;
      this.text = text;
      this.columns = columns;
    }

    public StructType readSchema() {
      return scan.readSchema();
    }

    public String description() {
      return "hive_acid (Python) " + text;
    }

    public scala.collection.immutable.Map getMetaData() {
      List pair = new ArrayList();
      pair.add(new scala.Tuple2("hive_acid", text));
      return seq(pair).toMap(scala.$less$colon$less$.MODULE$.refl());
    }

    public Batch toBatch() {
      return columns == null ? scan.toBatch() : (Batch) columns.apply(scan.toBatch());
    }

    public CustomMetric[] supportedCustomMetrics() {
      return scan.supportedCustomMetrics();
    }

    public CustomTaskMetric[] reportDriverMetrics() {
      return scan.reportDriverMetrics();
    }

    public Scan.ColumnarSupportMode columnarSupportMode() {
      return columns == null ? scan.columnarSupportMode() : Scan.ColumnarSupportMode.SUPPORTED;
    }
  }
}
