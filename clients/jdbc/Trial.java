import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.util.PGobject;

/** pgjdbc */
class Trial extends Tap
{
	// pgbouncer before 1.21 does not know prepared statements
	static final String OPTIONS = POOLED ? "?prepareThreshold=0" : "?prepareThreshold=5";
	static Connection connection;

	static Connection connect(String options) throws SQLException
	{
		return DriverManager.getConnection(URL + OPTIONS + options, USER, PASSWORD);
	}

	/** The first column of the first row. */
	static long value(String query, Object... parameters) throws SQLException
	{
		try (PreparedStatement statement = connection.prepareStatement(query))
		{
			for (int i = 0; i < parameters.length; i++)
				statement.setObject(i + 1, parameters[i]);
			ResultSet row = statement.executeQuery();
			row.next();
			return row.getLong(1);
		}
	}

	interface Setter { void set(PreparedStatement statement) throws SQLException; }

	/** Insert a comment whose ID is set in this way, and find it in this way. */
	static long insertAndFind(Setter setter) throws SQLException
	{
		try (PreparedStatement insert = connection.prepareStatement("INSERT INTO insta5.comments (id) VALUES (?)"))
		{
			setter.set(insert);
			insert.executeUpdate();
		}
		return find(setter);
	}

	static long find(Setter setter) throws SQLException
	{
		try (PreparedStatement find = connection.prepareStatement("SELECT count(*) FROM insta5.comments WHERE id = ?"))
		{
			setter.set(find);
			ResultSet row = find.executeQuery();
			row.next();
			return row.getLong(1);
		}
	}

	static List<Long> insertBatch(Connection connection, List<String> captions) throws SQLException
	{
		List<Long> ids = new ArrayList<>();
		// recipe: batch
		PreparedStatement insert = connection.prepareStatement(
			"INSERT INTO insta5.photos (caption) VALUES (?)", new String[] { "id" });
		for (String caption : captions)
		{
			insert.setString(1, caption);
			insert.addBatch();
		}
		insert.executeBatch();
		ResultSet key = insert.getGeneratedKeys();
		while (key.next())
			ids.add(key.getLong("id"));
		// end of recipe
		insert.close();
		return ids;
	}

	/** Do the photos of these IDs have these captions? */
	static boolean haveCaptions(List<Long> ids, List<String> captions) throws SQLException
	{
		List<String> found = new ArrayList<>();
		PreparedStatement query = connection.prepareStatement("SELECT caption FROM insta5.photos WHERE id = ANY (?) ORDER BY id");
		query.setArray(1, connection.createArrayOf("bigint", ids.toArray()));
		ResultSet row = query.executeQuery();
		while (row.next())
			found.add(row.getString(1));
		return found.equals(captions);
	}

	public static void main(String[] arguments) throws Exception
	{
		connection = connect("");
		System.out.println("# pgjdbc " + connection.getMetaData().getDriverVersion());
		Statement statement = connection.createStatement();
		List<String> captions = new ArrayList<>();
		for (int i = 0; i < 2500; i++)
			captions.add("caption " + i);

		is("a default, by getGeneratedKeys()", 5L, () -> {
			statement.execute("INSERT INTO insta5.photos (caption) VALUES ('a')", Statement.RETURN_GENERATED_KEYS);
			ResultSet key = statement.getGeneratedKeys();
			key.next();
			return value("SELECT instaid.extract_shard_id(?)", key.getLong("id"));
		});
		for (String rewrite : new String[] { "false", "true" })
			is("a batch, reWriteBatchedInserts=" + rewrite, true, () -> {
				try (Connection other = connect("&reWriteBatchedInserts=" + rewrite))
				{
					List<Long> ids = insertBatch(other, captions);
					return areNewIds(ids, 2500) && haveCaptions(ids, captions);
				}
			});

		CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
		is("COPY, IDs made by the server", 2L, () -> {
			copy.copyIn("COPY insta5.photos (caption) FROM STDIN", new StringReader("copied\ncopied\n"));
			return value("SELECT count(*) FROM insta5.photos WHERE caption = 'copied' AND instaid.extract_shard_id(id) = 5");
		});
		is("COPY, IDs brought along", BIG, () -> {
			copy.copyIn("COPY insta5.photos (id) FROM STDIN", new StringReader(BIG + "\n"));
			copy.copyIn("COPY insta5.comments (id, photo_id) FROM STDIN", new StringReader(BIG + "\t" + BIG + "\n"));
			return value("SELECT c.id FROM insta5.comments c JOIN insta5.photos p ON p.id = c.photo_id");
		});
		is("COPY to the client", BIG + "\n", () -> {
			ByteArrayOutputStream out = new ByteArrayOutputStream();
			copy.copyOut("COPY (SELECT id FROM insta5.comments WHERE photo_id IS NOT NULL) TO STDOUT", out);
			return out.toString();
		});

		for (String type : new String[] { "bigint", "instaid.id" })
			for (long id : new long[] { BIG, Long.MAX_VALUE, Long.MIN_VALUE })
				is("64 bits, " + type + ": " + id, id, () -> value("SELECT ?::" + type, id));

		for (String type : new String[] { "bigint", "instaid.id" })
		{
			ResultSet row = statement.executeQuery("SELECT " + BIG + "::" + type);
			row.next();
			is("read " + type + " by getLong()", BIG, () -> row.getLong(1));
			is("read " + type + " by getString()", "" + BIG, () -> row.getString(1));
			is("read " + type + " by getBigDecimal()", BigDecimal.valueOf(BIG), () -> row.getBigDecimal(1));
			if (type.equals("bigint"))
			{
				is("read bigint by getObject()", BIG, () -> row.getObject(1));
				is("read bigint by getObject(Long.class)", BIG, () -> row.getObject(1, Long.class));
			}
			else
			{
				is("getObject() of instaid.id is a PGobject", "" + BIG, () -> ((PGobject) row.getObject(1)).getValue());
				fails("getObject(Long.class) of instaid.id", "conversion to class java.lang.Long", () -> row.getObject(1, Long.class));
			}
		}

		is("parameter setLong()", 1L, () -> insertAndFind(s -> s.setLong(1, BIG + 1)));
		is("parameter setInt()", 1L, () -> insertAndFind(s -> s.setInt(1, 1)));
		is("parameter setShort()", 1L, () -> insertAndFind(s -> s.setShort(1, (short) 2)));
		is("parameter setBigDecimal(), in an INSERT", 1, () -> {
			PreparedStatement insert = connection.prepareStatement("INSERT INTO insta5.comments (id) VALUES (?)");
			insert.setBigDecimal(1, BigDecimal.valueOf(BIG + 4));
			return insert.executeUpdate();
		});
		is("parameter setObject(Long)", 1L, () -> insertAndFind(s -> s.setObject(1, BIG + 2)));
		is("parameter setObject(String, OTHER)", 1L, () -> insertAndFind(s -> s.setObject(1, "" + (BIG + 3), Types.OTHER)));
		fails("parameter setString()", "expression is of type character varying", () -> insertAndFind(s -> s.setString(1, "3")));
		fails("parameter setString(), bigint", "expression is of type character varying", () -> {
			PreparedStatement insert = connection.prepareStatement("INSERT INTO insta5.photos (id) VALUES (?)");
			insert.setString(1, "3");
			return insert.executeUpdate();
		});
		is("parameter setString(), stringtype=unspecified", 1, () -> {
			try (Connection other = connect("&stringtype=unspecified"))
			{
				PreparedStatement insert = other.prepareStatement("INSERT INTO insta5.comments (id) VALUES (?)");
				insert.setString(1, "3");
				return insert.executeUpdate();
			}
		});
		is("setNull(BIGINT)", 0L, () -> find(s -> s.setNull(1, Types.BIGINT)));

		is("array parameter of bigint", 2L, () -> value("SELECT count(*) FROM insta5.comments WHERE id = ANY (?)",
			connection.createArrayOf("bigint", new Long[] { BIG, 1L })));
		is("array parameter of instaid.id, and an array read", List.of(BIG, 7L), () -> {
			PreparedStatement insert = connection.prepareStatement(
				"INSERT INTO insta5.comments (likers) VALUES (?) RETURNING likers::bigint[]");
			insert.setArray(1, connection.createArrayOf("instaid.id", new Long[] { BIG, 7L }));
			ResultSet row = insert.executeQuery();
			row.next();
			return Arrays.asList((Long[]) row.getArray(1).getArray());
		});
		is("getArray() of instaid.id[] holds PGobjects", "" + BIG, () -> {
			ResultSet row = statement.executeQuery("SELECT likers FROM insta5.comments WHERE likers IS NOT NULL");
			row.next();
			return ((Object[]) row.getArray(1).getArray())[0].toString();
		});

		List<String> columns = List.of("photos.id int8 insta5.next_id() NO", "comments.id \"instaid\".\"id\" insta5.next_id() NO");
		is("metadata of the columns", columns, () -> {
			List<String> found = new ArrayList<>();
			for (String table : new String[] { "photos", "comments" })
			{
				ResultSet column = connection.getMetaData().getColumns(null, "insta5", table, "id");
				column.next();
				found.add(table + ".id " + column.getString("TYPE_NAME") + " " + column.getString("COLUMN_DEF") + " "
					+ column.getString("IS_AUTOINCREMENT"));
			}
			return found;
		});
		is("an updatable ResultSet", "changed", () -> {
			Statement updatable = connection.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE);
			ResultSet row = updatable.executeQuery("SELECT id, body FROM insta5.comments WHERE id = " + BIG);
			row.next();
			row.updateString("body", "changed");
			row.updateRow();
			row.refreshRow();
			return row.getString("body");
		});

		connection.setAutoCommit(false);
		is("a transaction that rolls back", 0L, () -> {
			long id = value("INSERT INTO insta5.photos (caption) VALUES ('rolled back') RETURNING id");
			connection.rollback();
			return value("SELECT count(*) FROM insta5.photos WHERE id = ?", id);
		});
		is("a prepared statement, twenty times", POOLED ? 0L : 1L, () -> {
			PreparedStatement find = connection.prepareStatement("SELECT id FROM insta5.comments WHERE id = ?");
			for (int i = 0; i < 20; i++)
			{
				find.setLong(1, BIG);
				ResultSet row = find.executeQuery();
				row.next();
				if (row.getLong(1) != BIG)
					return row.getString(1);
			}
			return value("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT id FROM insta5.comments%'");
		});
		connection.commit();
		done();
	}
}
