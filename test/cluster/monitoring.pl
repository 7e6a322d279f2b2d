# Collectors and Prometheus, as monitoring/README.md imports them: they read a server with
# shards, tickets, drift and a finding, as a role that is a member of pg_monitor and nothing
# else.  Each alert is tested, and each query of the dashboard has an answer.  The files of
# collectors that Debian does not have are read, and their queries run.
#
# packages: libyaml-libyaml-perl prometheus prometheus-postgres-exporter prometheus-sql-exporter

use strict;
use warnings;

use HTTP::Tiny;
use IO::Socket::INET;
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes ();
use YAML::XS ();

use Clients;
use Docs;

my $directory = PostgreSQL::Test::Utils::tempdir;
my $repository = $ENV{TESTDIR};
my $monitoring = "$repository/monitoring";
my $node = Clients::server('main');

# A server with something to see: IDs of the future, of a sequence that only one table uses, a
# frozen shard, a ticket near its guard, and a table whose default makes IDs of another shard
$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5), instaid.create_shard('insta6', 6),
		instaid.create_shard('insta7', 7);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
	INSERT INTO insta5.photos DEFAULT VALUES;
	CREATE TABLE insta6.photos (LIKE insta5.photos INCLUDING ALL);
	CREATE SEQUENCE insta5.likes_id_seq;
	CREATE TABLE insta5.likes (id bigint PRIMARY KEY
		DEFAULT insta5.next_id('insta5.likes_id_seq'));
	SELECT instaid.advance_past('insta5.likes_id_seq',
		instaid.make_id(now() + interval '1 h', 5, 0), instaid.default_epoch());
	SELECT instaid.freeze_shard('insta7');
	CREATE EXTENSION instaid_tickets;
	CREATE SEQUENCE few;
	SELECT instaid_tickets.guard('few', 100);
	SELECT instaid_tickets.next('few');
	CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
	-- what a role with CREATE on public can plant, nearer to the arguments than PostgreSQL's own
	CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text
		LANGUAGE plpgsql AS 'BEGIN RAISE ''planted''; END';
	CREATE FUNCTION public.planted(bigint, text) RETURNS bigint
		LANGUAGE plpgsql AS 'BEGIN RAISE ''planted''; END';
	CREATE AGGREGATE public.count(text) (SFUNC = public.planted, STYPE = bigint, INITCOND = 0)});

### The files

# The queries of a file by collector, by name
sub queries_of
{
	my ($file, $text) = @_;
	my $yaml = YAML::XS::Load($text);
	return map { $_ => $yaml->{$_}{query} } keys %$yaml if $file eq 'postgres_exporter.yaml';
	return queries_of('postgres_exporter.yaml', $yaml->{data}{queries})
	  if $file eq 'cloudnative-pg.yaml';
	return map { $_ => $yaml->{metrics}{$_}{sqls}{15} } keys %{ $yaml->{metrics} }
	  if $file eq 'pgwatch.yaml';
	return map { $_->{name} => $_->{query} } map { @{ $_->{queries} } } @{ $yaml->{jobs} };
}

for my $file (qw(postgres_exporter.yaml sql_exporter.yaml pgwatch.yaml cloudnative-pg.yaml))
{
	# the query of all shards, too, which is commented out
	my $text = slurp_file("$monitoring/$file");
	$text =~ s/^ *# All shards.*\n((?: *#.*\n)+)/$1 =~ s,^( *)# ,$1,mgr/me or die $file;
	my %queries = queries_of($file, $text);
	my $answers = '';
	for my $name (sort keys %queries)
	{
		my $count = $node->safe_psql('postgres',
			"BEGIN READ ONLY; SELECT count(*) FROM ($queries{$name}) AS q",
			connstr => $node->connstr('postgres') . ' user=monitor');
		$answers .= "$name $count\n";
	}
	is($answers, join('', map { "$_\n" }
			'instaid 1', 'instaid_audit 2', 'instaid_live 1', 'instaid_owner 1',
			'instaid_shard 3',
			'instaid_tickets 1', 'instaid_tickets_audit 2', 'instaid_tickets_worst 1',
			'instaid_worst 1'),
		"$file: the queries run as a member of pg_monitor");
}
my %metrics = %{ YAML::XS::Load(slurp_file("$monitoring/postgres_exporter.yaml")) };
my %operator = %{ YAML::XS::Load(
	YAML::XS::LoadFile("$monitoring/cloudnative-pg.yaml")->{data}{queries}) };
is_deeply({ map { $_ => $operator{$_}{metrics} } keys %operator },
	{ map { $_ => $metrics{$_}{metrics} } keys %metrics },
	'cloudnative-pg.yaml has the metrics of postgres_exporter.yaml');
my @usages = map { $_->{usage} } map { values %$_ } map { @{ $_->{metrics} } } values %metrics;
is((grep { !/^(LABEL|GAUGE)$/ } @usages), 0,
	'cloudnative-pg.yaml has the metrics of postgres_exporter.yaml, with the usages that both'
	  . ' know');

command_ok([ 'promtool', 'check', 'rules', "$monitoring/alerts.yaml" ],
	'promtool reads the alerts');
command_ok([ 'promtool', 'test', 'rules', "$repository/test/cluster/alerts_test.yaml" ],
	'promtool reads the alerts, and each fires when it should');
my $alerts = slurp_file("$monitoring/alerts.yaml");
is(scalar(() = $alerts =~ /^ +page: /mg), scalar(() = $alerts =~ /^ +- alert: /mg),
	'promtool reads the alerts, and each names a section; the suite lint looks for it');

### The programs

my @running;
END { $_->kill_kill(grace => 5) for @running }

sub free_port
{
	return IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport;
}

# Start a program, and wait until it answers at a path.
sub start
{
	my ($port, $path, $command, %environment) = @_;
	local @ENV{ keys %environment } = values %environment;
	my $log = "$directory/$port.log";
	push @running, IPC::Run::start($command, '>', $log, '2>&1');
	my $answer;
	for (1 .. 600)
	{
		$answer = HTTP::Tiny->new(timeout => 10)->get("http://127.0.0.1:$port$path");
		return if $answer->{success};
		Time::HiRes::usleep(100_000);
	}
	die "$command->[0] does not answer: $answer->{status}\n" . slurp_file($log);
}

my ($postgres_exporter, $mistaken, $sql_exporter, $prometheus) = map { free_port } 1 .. 4;
my ($host, $port) = ($node->host, $node->port);

# the command of the page, with our address and connection string
sub start_postgres_exporter
{
	my ($exporter, $database) = @_;
	my ($command) =
	  slurp_file("$monitoring/README.md") =~ /`(DATA_SOURCE_NAME=.*postgres_exporter.yaml)`/;
	$command =~ s{postgres://monitor\@localhost/app }
		{'postgres://monitor@/$database?host=$host&port=$port&sslmode=disable' exec } or die;
	start($exporter, '/metrics',
		[ 'sh', '-c', "cd '$monitoring' && $command --web.listen-address=127.0.0.1:$exporter" ]);
	return;
}
start_postgres_exporter($postgres_exporter, 'postgres');
# a mistake: a database without instaid
start_postgres_exporter($mistaken, 'template1');

my $jobs = slurp_file("$monitoring/sql_exporter.yaml");
my $url = "postgres://monitor@/postgres?host=$host&port=$port&sslmode=disable";
is($jobs =~ s,postgres://monitor\@localhost/app,$url,g, 2, 'sql_exporter.yaml has two connections');
# the same mistake
my $mistaken_url = $url =~ s,/postgres\?,/template1?,r;
$jobs =~ s/^( *- )\Q$url\E\n/$&$1$mistaken_url\n/m or die;
append_to_file("$directory/sql_exporter.yaml", $jobs);
start($sql_exporter, '/metrics',
	[ 'prometheus-sql-exporter', "-web.listen-address=127.0.0.1:$sql_exporter",
		"-config.file=$directory/sql_exporter.yaml" ]);

# the block of the page, with our ports
my ($block) = grep { $_->{language} eq 'yaml' }
  section_blocks("$repository/monitoring/README.md", 'Import the metrics');
my $config = $block->{text};
$config =~ s/localhost:9187/127.0.0.1:$postgres_exporter, 127.0.0.1:$mistaken/ or die;
$config =~ s/localhost:9237/127.0.0.1:$sql_exporter/ or die;
append_to_file("$directory/prometheus.yml",
	"global: {scrape_interval: 1s, evaluation_interval: 1s}\n$config");
append_to_file("$directory/alerts.yaml", slurp_file("$monitoring/alerts.yaml"));
start($prometheus, '/-/ready',
	[ 'prometheus', "--config.file=$directory/prometheus.yml",
		"--storage.tsdb.path=$directory/prometheus",
		"--web.listen-address=127.0.0.1:$prometheus" ]);

# The results of an expression
sub ask
{
	my ($expression) = @_;
	my $http = HTTP::Tiny->new(timeout => 30);
	my $answer = $http->post_form("http://127.0.0.1:$prometheus/api/v1/query",
		{ query => $expression });
	die "$expression: $answer->{content}" unless $answer->{success};
	return @{ JSON::PP::decode_json($answer->{content})->{data}{result} };
}

sub ask_until
{
	my ($expression, $count) = @_;
	my @results;
	for (1 .. 600)
	{
		@results = ask($expression);
		return @results if @results >= $count;
		Time::HiRes::usleep(100_000);
	}
	return @results;
}

### What Prometheus has

my @both = map { "job=\"$_\"" } qw(postgres_exporter sql_exporter);
for my $job (@both)
{
	my %value;
	for my $name (map { keys %$_ } @{ $metrics{instaid}{metrics} })
	{
		next if $name eq 'datname';
		my ($result) = ask_until("instaid_$name\{$job,datname=\"postgres\"}", 1);
		$value{$name} = $result->{value}[1];
	}
	ok($value{drift_seconds} > 3000 && $value{drift_seconds} < 3700, "$job: drift");
	ok($value{expiry_seconds} > 1e8, 'imported metrics: expiry');
	delete @value{qw(drift_seconds expiry_seconds)};
	is_deeply(\%value, { shards => 3, frozen_shards => 1, unreadable => 0,
			drift_limit_seconds => 2.064, last_id_seconds => 0 },
			'imported metrics: the other metrics');
	my ($worst) = ask_until("instaid_worst_info{$job}", 1);
	is($worst->{metric}{drift_shard}, 'insta5', 'imported metrics: the shard that they are about');
	my %of_tickets = map { $_ => (ask_until("instaid_tickets_$_\{$job,datname=\"postgres\"}", 1))[0]
		  ->{value}[1] } qw(tickets values_left unreadable failed_refills failing empty);
	is_deeply(\%of_tickets, { tickets => 1, values_left => 99, unreadable => 0,
			failed_refills => 0, failing => 0, empty => 0 },
			'imported metrics: the metrics of the tickets');
	($worst) = ask_until("instaid_tickets_worst_info{$job}", 1);
	is($worst->{metric}{ticket}, 'few', 'imported metrics: the ticket that they are about');
	is(join(' ', map { $_->{metric}{shard_id} } ask_until("instaid_live_shard{$job}", 1)), '5',
		'imported metrics: the shard ID that issues IDs');
	my ($owner) = ask_until("instaid_owner_drift_seconds{$job}", 1);
	is($owner->{metric}{owner}, $node->safe_psql('postgres', 'SELECT current_user'),
		'imported metrics: the role that owns the shards');
	my ($findings) = ask_until("instaid_audit_findings{$job,severity=\"error\"}", 1);
	is($findings->{value}[1], 1, 'imported metrics: the finding');
}

# The database without instaid has the alert of its own, and the other one has not.
for my $job (@both)
{
	my ($silent) = ask_until("ALERTS{alertname=\"InstaidSilent\",$job}", 1);
	is($silent->{metric}{datname},
		$job =~ /sql/ ? 'template1' : "127.0.0.1:$mistaken", "$job: who never had metrics");
}
$_ .= ',datname="postgres"' for @both;
for my $job (@both)
{
	is(join(' ', sort map { $_->{metric}{alertname} } ask_until("ALERTS{$job}", 5)),
		'InstaidDrift InstaidFindings InstaidFrozenShard InstaidTicketEnds InstaidWarnings',
		"$job: Prometheus has the alerts that this server deserves");
}

# without drift and without a ticket, too
$node->safe_psql('postgres', q{
	DROP SEQUENCE few; SELECT instaid.freeze_shard('insta5')});
my ($failed) =
  ask_until('sql_exporter_last_scrape_failed{database="postgres",query="instaid_worst"} == 0', 1);
my ($none) = ask_until('instaid_worst_info{job="sql_exporter",drift_shard=""}', 1);
($none) = $none && ask_until('instaid_tickets_worst_info{job="sql_exporter",ticket=""}', 1);
ok($failed && $none, 'sql_exporter reads a server whose worst shard and ticket are null');

my $dashboard = JSON::PP::decode_json(slurp_file("$monitoring/dashboard.json"));
my @expressions = map { $_->{expr} } map { @{ $_->{targets} } } @{ $dashboard->{panels} };
for my $expression (@expressions)
{
	ok(scalar(ask_until($expression, 1)), "the dashboard's $expression has an answer");
}
cmp_ok(scalar(@expressions), '>=', @{ $dashboard->{panels} },
	"each panel of the dashboard has a query");

# a shard is lost
$node->safe_psql('postgres', 'DROP SEQUENCE insta6.table_id_seq CASCADE');
for my $job (@both)
{
	my ($fewer) = ask_until("ALERTS{alertname=\"InstaidFewerShards\",$job}", 1);
	ok($fewer, "$job: a shard that is gone has an alert");
}

$node->stop;
ask_until('sql_exporter_last_scrape_failed{database="postgres",query="instaid"} == 1', 1);
for my $job (@both)
{
	is(scalar(ask_until("ALERTS{alertname=\"InstaidSilent\",$job}", 1)), 1,
		"$job: a server that is down has an alert");
}

done_testing();
