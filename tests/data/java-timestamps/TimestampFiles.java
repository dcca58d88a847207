import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.sql.Timestamp;
import java.util.TimeZone;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.*;
import org.apache.orc.*;

/** Arguments: output file, file of wall-clock times, format version (11 or 12).  The writer's zone is -Duser.timezone. */
public class TimestampFiles {
  public static void main(String[] arguments) throws Exception {
    TypeDescription schema = TypeDescription.fromString("struct<t:timestamp,l:array<timestamp>,d:date,wall:string>");
    OrcFile.WriterOptions options = OrcFile.writerOptions(new Configuration()).setSchema(schema)
        .compress(CompressionKind.ZLIB)
        .version(arguments[2].equals("11") ? OrcFile.Version.V_0_11 : OrcFile.Version.V_0_12);
    Writer writer = OrcFile.createWriter(new Path(arguments[0]), options);
    VectorizedRowBatch batch = schema.createRowBatch();
    TimestampColumnVector t = (TimestampColumnVector) batch.cols[0];
    ListColumnVector l = (ListColumnVector) batch.cols[1];
    LongColumnVector d = (LongColumnVector) batch.cols[2];
    BytesColumnVector wall = (BytesColumnVector) batch.cols[3];
    for (String text : Files.readAllLines(java.nio.file.Path.of(arguments[1]))) {
      int row = batch.size++;
      Timestamp value = Timestamp.valueOf(text);
      t.set(row, value);
      l.offsets[row] = row;
      l.lengths[row] = 1;
      l.child.ensureSize(row + 1, true);
      ((TimestampColumnVector) l.child).set(row, value);
      long local = value.getTime() + TimeZone.getDefault().getOffset(value.getTime());
      d.vector[row] = Math.floorDiv(local, 86400000L);
      wall.setVal(row, text.getBytes(StandardCharsets.UTF_8));
    }
    writer.addRowBatch(batch);
    writer.close();
  }
}
