package org.apache.hadoop.hive.ql.exec;

import java.util.ArrayList;
import java.util.List;
import org.apache.hive.com.esotericsoftware.kryo.Kryo;
import org.apache.hive.com.esotericsoftware.kryo.Serializer;
import org.apache.hive.com.esotericsoftware.kryo.io.Input;
import org.apache.hive.com.esotericsoftware.kryo.io.Output;

/** Stands before Hive 3's class of this name, which asks for private fields that lists have not had since Java 9. */
class SerializationUtilities$ArrayListSubListSerializer extends Serializer<List<?>> {
  public SerializationUtilities$ArrayListSubListSerializer() {}

  @Override
  public List<?> read(Kryo kryo, Input input, Class<List<?>> kind) {
    return (List<?>) kryo.readClassAndObject(input);
  }

  @Override
  public void write(Kryo kryo, Output output, List<?> list) {
    kryo.writeClassAndObject(output, new ArrayList<Object>(list));
  }
}
