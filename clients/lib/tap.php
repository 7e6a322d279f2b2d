<?php
// TAP for trials in PHP

const BIG = 4001511883701836730;	// a double makes it 4001511883701836800
define('POOLED', getenv('VIA') == 'pgbouncer');
$done = $failed = 0;
error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);

// Test that the function returns the expected value.  With $fails, the function is
// known not to work, and the test is that it fails with this message.
function is($name, $expected, $function, $fails = null)
{
	global $done, $failed;
	try {
		$result = $function();
		$ok = $fails === null && $result === $expected;
	} catch (Throwable $e) {
		$result = get_class($e) . ': ' . $e->getMessage();
		$ok = $fails !== null && str_contains($result, $fails);
	}
	echo $ok ? 'ok ' : 'not ok ', ++$done, ' - ', $fails === null ? $name : "known: $name: $fails", "\n";
	if (!$ok) {
		$failed++;
		echo str_replace("\n", "\n# ", '# got ' . var_export($result, true)), "\n";
	}
}

function fails($name, $message, $function)
{
	is($name, null, $function, $message);
}

// Are these so many IDs of shard 5, in order?
function are_new_ids($ids, $count)
{
	$sorted = array_unique($ids);
	sort($sorted);
	return count($ids) == $count && $ids === $sorted
		&& !array_filter($ids, fn($id) => !is_int($id) || $id < 1 << 60 || ($id >> 10 & 8191) != 5);
}

function done()
{
	global $done, $failed;
	echo "1..$done\n";
	exit($failed > 0 ? 1 : 0);
}
