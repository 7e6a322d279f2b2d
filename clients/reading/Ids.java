// reads IDs and shortcodes as the trial sends them
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

public class Ids
{
	// the functions, to copy from here
	static final Instant EPOCH = Instant.parse("2011-08-24T21:07:01.721Z");
	static final String DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	static Instant time(long id) { return EPOCH.plusMillis(id >> 23); }
	static long shard(long id) { return id >> 10 & 8191; }
	static long sequence(long id) { return id & 1023; }
	static long minId(Instant time) { return EPOCH.until(time, ChronoUnit.MILLIS) << 23; }

	static String toShortcode(long id) {
		return (id > 63 ? toShortcode(id >> 6) : "") + DIGITS.charAt((int) (id & 63));
	}

	static long fromShortcode(String text) {
		long id = text.chars().mapToLong(DIGITS::indexOf).reduce(0, (high, digit) -> high << 6 | digit);
		if (!toShortcode(id).equals(text))
			throw new IllegalArgumentException('"' + text + "\" is not a shortcode");
		return id;
	}
	// to here

	public static void main(String[] args) throws Exception
	{
		for (String line : (Iterable<String>) new BufferedReader(new InputStreamReader(System.in, "UTF-8")).lines()::iterator)
		{
			try
			{
				long id = line.matches("\\d+") ? Long.parseLong(line) : fromShortcode(line);
				System.out.println(id + " " + time(id).toEpochMilli() + " " + shard(id) + " " + sequence(id) + " " +
					minId(time(id)) + " " + toShortcode(id));
			}
			catch (IllegalArgumentException e)
			{
				System.out.println("refused");
			}
		}
	}
}
