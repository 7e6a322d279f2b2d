<?php
// reads IDs and shortcodes as the trial sends them

// the functions, to copy from here
const EPOCH = 1314220021721;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function created_at(int $id): DateTimeImmutable {
	return DateTimeImmutable::createFromFormat('U.v', sprintf('%.3F', (($id >> 23) + EPOCH) / 1000));
}
function shard(int $id): int { return $id >> 10 & 8191; }
function sequence(int $id): int { return $id & 1023; }
function min_id(DateTimeInterface $time): int { return (int) $time->format('Uv') - EPOCH << 23; }
function to_shortcode(int $id): string { return ($id > 63 ? to_shortcode($id >> 6) : '') . DIGITS[$id & 63]; }
function from_shortcode(string $text): int {
	$id = array_reduce(str_split($text), fn($high, $digit) => $high << 6 | strpos(DIGITS, $digit), 0);
	if (to_shortcode($id) !== $text)
		throw new ValueError("\"$text\" is not a shortcode");
	return $id;
}
// to here

while (($line = fgets(STDIN)) !== false)
{
	try
	{
		$line = rtrim($line, "\n");
		$id = preg_match('/^\d+$/D', $line) ? (int) $line : from_shortcode($line);
		$time = created_at($id);
		echo implode(' ', [$id, $time->format('Uv'), shard($id), sequence($id), min_id($time), to_shortcode($id)]), "\n";
	}
	catch (ValueError $e)
	{
		echo "refused\n";
	}
}
