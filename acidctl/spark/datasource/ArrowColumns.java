package acidctl;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteOrder;
import java.util.function.UnaryOperator;
import org.apache.arrow.vector.*;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads a source in Python as batches of columns: Spark's own reader gets such batches from Python, and makes rows of
 * them, one by one, before the plan sees any.
 *
 * The batches lie below two steps of Spark's iterator over rows: `map` (to UnsafeRow) over `flatMap` (to the rows of a
 * batch) over what the Python worker sends. A batch has one column, a struct of those that the scan reads.
 *
 * Compiled by Janino: no lambdas, no generics. Executors get it as a jar.
 */
public class ArrowColumns implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  private final PartitionReaderFactory rows;

  /** Takes Spark's factory of readers of rows. */
  public ArrowColumns(PartitionReaderFactory rows) {
    this.rows = rows;
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader createReader(InputPartition partition) {
    return rows.createReader(partition);
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return new Batches(rows.createReader(partition));
  }

  /** From Spark's plan of a scan in Python to the same that hands over columns. */
  public static class OfBatch implements UnaryOperator {
    public Object apply(Object plan) {
      return new Plan((Batch) plan);
    }

    /** What executors get of a plan, of nothing: to see whether they know it. */
    public Object sample() {
      return new ArrowColumns(null);
    }
  }

  private static class Plan implements Batch {
    private final Batch plan;

    Plan(Batch plan) {
      this.plan = plan;
    }

    public InputPartition[] planInputPartitions() {
      return plan.planInputPartitions();
    }

    public PartitionReaderFactory createReaderFactory() {
      return new ArrowColumns(plan.createReaderFactory());
    }
  }

  private static class Batches implements PartitionReader {
    private static final String OTHER = "Spark's reader of Python sources is made of other parts here: do without by "
        + "spark.sql.optimizer.excludedRules = acidctl.Pruning";

    private final PartitionReader rows;
    private final scala.collection.Iterator batches;

    Batches(PartitionReader rows) {
      this.rows = rows;
      Object below = inside(inside(inside(rows, "outputIter"), "$outer"), "$outer");
      if (!(below instanceof InterruptibleIterator)) throw new IllegalStateException(OTHER);
      this.batches = (InterruptibleIterator) below;
    }

    private static Object inside(Object of, String name) {
      try {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException(OTHER, error);
      }
    }

    public boolean next() {
      return batches.hasNext();
    }

    public Object get() {
      ColumnarBatch sent = (ColumnarBatch) batches.next();
      ArrowColumnVector struct = (ArrowColumnVector) sent.column(0);
      ColumnVector[] columns = new ColumnVector[((StructType) struct.dataType()).length()];
      for (int i = 0; i < columns.length; i++) {
        ArrowColumnVector one = struct.getChild(i);
        columns[i] = Plain.fits(one.getValueVector()) ? new Plain(one) : new Lent(one);
      }
      return new ColumnarBatch(columns, sent.numRows());
    }

    public void close() throws IOException {
      rows.close();
    }

    public CustomTaskMetric[] currentMetricsValues() {
      return rows.currentMetricsValues();
    }

    public void initMetricsValues(CustomTaskMetric[] metrics) {
      rows.initMetricsValues(metrics);
    }
  }

  /**
   * A column of Spark's that nobody else closes: the next batch comes in the same buffers, which end with the task.
   *
   * No ArrowColumnVector itself: Spark sends those on to functions in Python as they are, and keeps them until the
   * answer comes, when the next batch has long taken their place.
   */
  private static class Lent extends ColumnVector {
    private final ColumnVector column;

    Lent(ColumnVector column) {
      super(column.dataType());
      this.column = column;
    }

    public void close() {}

    public boolean hasNull() {
      return column.hasNull();
    }

    public int numNulls() {
      return column.numNulls();
    }

    public boolean isNullAt(int row) {
      return column.isNullAt(row);
    }

    public boolean getBoolean(int row) {
      return column.getBoolean(row);
    }

    public byte getByte(int row) {
      return column.getByte(row);
    }

    public short getShort(int row) {
      return column.getShort(row);
    }

    public int getInt(int row) {
      return column.getInt(row);
    }

    public long getLong(int row) {
      return column.getLong(row);
    }

    public float getFloat(int row) {
      return column.getFloat(row);
    }

    public double getDouble(int row) {
      return column.getDouble(row);
    }

    public ColumnarArray getArray(int row) {
      return column.getArray(row);
    }

    public ColumnarMap getMap(int row) {
      return column.getMap(row);
    }

    public Decimal getDecimal(int row, int precision, int scale) {
      return column.getDecimal(row, precision, scale);
    }

    public UTF8String getUTF8String(int row) {
      return column.getUTF8String(row);
    }

    public byte[] getBinary(int row) {
      return column.getBinary(row);
    }

    public ColumnVector getChild(int place) {
      return column.getChild(place);
    }
  }

  /** Values of simple types are read where they lie: Arrow's own way, with its checks, takes Java twice the time. */
  private static final class Plain extends Lent {
    private final int nulls;
    private final long valid;
    private final long data;
    private final long offsets;

    Plain(ArrowColumnVector column) {
      super(column);
      FieldVector vector = (FieldVector) column.getValueVector();
      nulls = vector.getNullCount();
      valid = vector.getValidityBufferAddress();
      data = vector.getDataBufferAddress();
      offsets = vector instanceof VarCharVector ? vector.getOffsetBufferAddress() : 0;
    }

    static boolean fits(ValueVector of) {
      boolean isNumber = of instanceof TinyIntVector || of instanceof SmallIntVector || of instanceof IntVector;
      isNumber |= of instanceof BigIntVector || of instanceof Float4Vector || of instanceof Float8Vector;
      boolean isTime = of instanceof DateDayVector || of instanceof TimeStampMicroVector;
      isTime |= of instanceof TimeStampMicroTZVector;
      boolean isDecimal = of instanceof DecimalVector && ((DecimalVector) of).getPrecision() <= 18;
      boolean isLittle = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;
      return isNumber || isTime || of instanceof VarCharVector || (isDecimal && isLittle);
    }

    public boolean hasNull() {
      return nulls > 0;
    }

    public int numNulls() {
      return nulls;
    }

    public boolean isNullAt(int row) {
      return nulls > 0 && (Platform.getByte(null, valid + (row >> 3)) >> (row & 7) & 1) == 0;
    }

    public byte getByte(int row) {
      return Platform.getByte(null, data + row);
    }

    public short getShort(int row) {
      return Platform.getShort(null, data + 2L * row);
    }

    public int getInt(int row) {
      return Platform.getInt(null, data + 4L * row);
    }

    public long getLong(int row) {
      return Platform.getLong(null, data + 8L * row);
    }

    public float getFloat(int row) {
      return Platform.getFloat(null, data + 4L * row);
    }

    public double getDouble(int row) {
      return Platform.getDouble(null, data + 8L * row);
    }

    /** Of 16 bytes the lower 8 say all. */
    public Decimal getDecimal(int row, int precision, int scale) {
      return isNullAt(row) ? null : Decimal.createUnsafe(Platform.getLong(null, data + 16L * row), precision, scale);
    }

    public UTF8String getUTF8String(int row) {
      if (isNullAt(row)) return null;
      int start = Platform.getInt(null, offsets + 4L * row);
      return UTF8String.fromAddress(null, data + start, Platform.getInt(null, offsets + 4L * row + 4) - start);
    }
  }
}
