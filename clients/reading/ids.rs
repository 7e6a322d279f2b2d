// reads IDs and shortcodes as the trial sends them
use std::io::BufRead;

// the functions, to copy from here
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const EPOCH: Duration = Duration::from_millis(1_314_220_021_721);
const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn decode(id: i64) -> (SystemTime, i64, i64) {
    (UNIX_EPOCH + EPOCH + Duration::from_millis(id as u64 >> 23), id >> 10 & 8191, id & 1023)
}

fn min_id(time: SystemTime) -> Option<i64> {
    Some((time.duration_since(UNIX_EPOCH + EPOCH).ok()?.as_millis() as i64) << 23)
}

fn to_shortcode(id: i64) -> String {
    let high = if id > 63 { to_shortcode(id >> 6) } else { String::new() };
    high + &DIGITS[(id & 63) as usize..][..1]
}

fn from_shortcode(text: &str) -> Option<i64> {
    let id = text.chars().try_fold(0, |id, digit| Some(id << 6 | DIGITS.find(digit)? as i64))?;
    (to_shortcode(id) == text).then_some(id)
}
// to here

fn main() {
    for line in std::io::stdin().lock().lines().map(|line| line.unwrap()) {
        if let Some(id) = line.parse().ok().or_else(|| from_shortcode(&line)) {
            let (time, shard, sequence) = decode(id);
            let ms = time.duration_since(UNIX_EPOCH).unwrap().as_millis();
            println!("{id} {ms} {shard} {sequence} {} {}", min_id(time).unwrap(), to_shortcode(id));
        } else {
            println!("refused");
        }
    }
}
