import org.eclipse.persistence.config.SessionCustomizer;
import org.eclipse.persistence.queries.ValueReadQuery;
import org.eclipse.persistence.sequencing.QuerySequence;
import org.eclipse.persistence.sessions.Session;

// recipe: generator
public class ShardId implements SessionCustomizer
{
	public void customize(Session session)
	{
		QuerySequence sequence = new QuerySequence("insta5", 1);
		sequence.setSelectQuery(new ValueReadQuery("SELECT insta5.next_id()"));
		session.getLogin().addSequence(sequence);
	}
}
// end of recipe
