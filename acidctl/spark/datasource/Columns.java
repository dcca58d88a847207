package acidctl;

import java.lang.reflect.Field;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Hands Spark the Arrow batches of a Python source as they come, on executors.
 *
 * Spark's own reader makes a row of each, out of an iterator over the rows of batches; this one takes the batches from
 * below that iterator, so that Spark's generated code reads their vectors. Where the iterator is another than the one of
 * Spark 4.0 to 4.3 rows are read as Spark gives them, and put into batches.
 *
 * Executors get this class in a jar. Compiled by Janino: no lambdas, no generics.
 */
public class Columns implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;
  private static final int ROWS = 4096;

  private final PartitionReaderFactory rows;
  private final StructType schema;

  public Columns(PartitionReaderFactory rows, StructType schema) {
    this.rows = rows;
    this.schema = schema;
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader createReader(InputPartition partition) {
    return rows.createReader(partition);
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    PartitionReader reader = rows.createReader(partition);
    scala.collection.Iterator batches = below(reader);
    return batches != null ? (PartitionReader) new Batches(reader, batches, schema) : new Rows(reader, schema);
  }

  /** What an iterator of Spark's `batches.flatMap(rows).map(copy)` takes its batches from; null where it is made otherwise. */
  private static scala.collection.Iterator below(PartitionReader reader) {
    try {
      Object at = field(reader, "outputIter");
      for (int i = 0; i < 2; i++) {
        if (!at.getClass().getName().startsWith("scala.collection.Iterator$$anon$")) return null;
        at = field(at, "$outer");
      }
      // Another step would be one that changes batches or rows.
      boolean isLast = !at.getClass().getName().startsWith("scala.");
      return isLast && at instanceof scala.collection.Iterator ? (scala.collection.Iterator) at : null;
    } catch (Exception error) {
      return null;
    }
  }

  private static Object field(Object of, String name) throws Exception {
    Field field = of.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  /** Batches of one struct, whose fields are the columns. */
  private static class Batches implements PartitionReader {
    private final PartitionReader reader;
    private final scala.collection.Iterator batches;
    private final StructType schema;
    private boolean isKnown;

    Batches(PartitionReader reader, scala.collection.Iterator batches, StructType schema) {
      this.reader = reader;
      this.batches = batches;
      this.schema = schema;
    }

    public boolean next() {
      return batches.hasNext();
    }

    public Object get() {
      ColumnarBatch batch = (ColumnarBatch) batches.next();
      ColumnVector all = batch.column(0);
      // Whoever reads vectors trusts their types.
      if (!isKnown && !all.dataType().catalogString().equals(schema.catalogString())) {
        throw new IllegalStateException("Python gave " + all.dataType().catalogString());
      }
      isKnown = true;
      ColumnVector[] columns = new ColumnVector[schema.length()];
      for (int i = 0; i < columns.length; i++) columns[i] = all.getChild(i);
      ColumnarBatch flat = new ColumnarBatch(columns);
      flat.setNumRows(batch.numRows());
      return flat;
    }

    public CustomTaskMetric[] currentMetricsValues() {
      return reader.currentMetricsValues();
    }

    public void close() throws java.io.IOException {
      reader.close();
    }
  }

  /** Rows, put into batches. */
  private static class Rows implements PartitionReader {
    private final PartitionReader reader;
    private final StructType schema;
    private final RowToColumnConverter converter;
    private OnHeapColumnVector[] columns;
    private ColumnarBatch batch;

    Rows(PartitionReader reader, StructType schema) {
      this.reader = reader;
      this.schema = schema;
      this.converter = new RowToColumnConverter(schema);
    }

    public boolean next() throws java.io.IOException {
      close(columns);
      columns = OnHeapColumnVector.allocateColumns(ROWS, schema);
      int count = 0;
      while (count < ROWS && reader.next()) {
        converter.convert((InternalRow) reader.get(), (WritableColumnVector[]) columns);
        count++;
      }
      batch = new ColumnarBatch((ColumnVector[]) columns);
      batch.setNumRows(count);
      return count > 0;
    }

    public Object get() {
      return batch;
    }

    public CustomTaskMetric[] currentMetricsValues() {
      return reader.currentMetricsValues();
    }

    public void close() throws java.io.IOException {
      close(columns);
      columns = null;
      reader.close();
    }

    private static void close(OnHeapColumnVector[] columns) {
      for (int i = 0; columns != null && i < columns.length; i++) columns[i].close();
    }
  }
}
