import java.io.Serializable;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import org.hibernate.HibernateException;
import org.hibernate.dialect.Dialect;
import org.hibernate.engine.SessionImplementor;
import org.hibernate.id.Configurable;
import org.hibernate.id.IdentifierGenerator;
import org.hibernate.type.Type;

/**
 * A generator of Hibernate that takes each ID from a shard before the INSERT, so that
 * Hibernate can send many INSERTs in one batch. It cannot with GenerationType.IDENTITY.
 *
 * The parameter "schema" is the schema of the shard, as SQL writes it. Without it, the shard is the setting
 * hibernate.default_schema, so that one class serves several shards:
 *
 * @GeneratedValue(generator = "insta5")
 * @GenericGenerator(name = "insta5", strategy = "ShardId", parameters = @Parameter(name = "schema", value = "insta5"))
 *
 * This is tested with Hibernate 3.6. Later versions pass other classes to both methods.
 */
public class ShardId implements IdentifierGenerator, Configurable
{
	private String query;

	public void configure(Type type, Properties parameters, Dialect dialect)
	{
		query = "SELECT " + parameters.getProperty("schema") + ".next_id()";
	}

	public Serializable generate(SessionImplementor session, Object entity)
	{
		try (Statement statement = session.connection().createStatement(); ResultSet row = statement.executeQuery(query))
		{
			row.next();
			return row.getLong(1);
		}
		catch (SQLException e)
		{
			throw new HibernateException(e);
		}
	}
}
