import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.TreeSet;

/** TAP for trials in Java */
class Tap
{
	static final long BIG = 4001511883701836730L;	// a double makes it 4001511883701836800
	static final boolean POOLED = System.getenv("VIA").equals("pgbouncer");
	static final String URL = String.format("jdbc:postgresql://%s:%s/%s", System.getenv("PGHOST"), System.getenv("PGPORT"),
		System.getenv("PGDATABASE"));
	static final String USER = System.getenv("PGUSER"), PASSWORD = System.getenv("PGPASSWORD");

	interface Check { Object run() throws Exception; }

	private static int number, failed;

	/** Test that the check returns the expected value. */
	static void is(String name, Object expected, Check check)
	{
		Object result;
		try { result = check.run(); }
		catch (Throwable e) { result = rootOf(e); }
		report(Objects.equals(expected, result), name, result);
	}

	/** Test that what is known not to work fails with this message. */
	static void fails(String name, String message, Check check)
	{
		Object result;
		try { result = check.run(); }
		catch (Throwable e) { result = rootOf(e).getMessage(); }
		report(result instanceof String && ((String) result).contains(message), "known: " + name + ": " + message, result);
	}

	/** Are these so many IDs of shard 5, in order? */
	static boolean areNewIds(List<Long> ids, int count)
	{
		return ids.size() == count && new ArrayList<>(new TreeSet<>(ids)).equals(ids)
			&& ids.get(0) > 1L << 60 && ids.stream().allMatch(id -> (id >> 10 & 8191) == 5);
	}

	static void done()
	{
		System.out.println("1.." + number);
		System.exit(failed > 0 ? 1 : 0);
	}

	private static Throwable rootOf(Throwable e)
	{
		return e.getCause() == null ? e : rootOf(e.getCause());
	}

	private static void report(boolean ok, String name, Object result)
	{
		System.out.println((ok ? "ok " : "not ok ") + ++number + " - " + name);
		if (!ok)
		{
			failed++;
			System.out.println("# got " + String.valueOf(result).replace("\n", "\n# "));
		}
	}
}
