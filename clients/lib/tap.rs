//! The output of a trial, in TAP

use std::error::Error;
use std::fmt::Debug;

/// The tests so far, and those that failed
pub struct Tap(pub u32, pub u32);

impl Tap {
    fn report(&mut self, ok: bool, name: &str, got: String) {
        self.0 += 1;
        println!("{} {} - {}", if ok { "ok" } else { "not ok" }, self.0, name);
        if !ok {
            self.1 += 1;
            println!("# got {}", got.replace('\n', "\n# "));
        }
    }

    /// Test that this is the expected value.
    pub fn is<T: PartialEq + Debug, E: Debug>(&mut self, name: &str, expected: T, got: Result<T, E>) {
        self.report(matches!(&got, Ok(value) if *value == expected), name, format!("{:?}", got));
    }

    /// Test that what is known not to work fails with this message.
    pub fn fails<T: Debug, E: Error>(&mut self, name: &str, message: &str, got: Result<T, E>) {
        let ok = matches!(&got, Err(e) if format!("{}: {:?}", e, e.source().map(|s| s.to_string())).contains(message));
        self.report(ok, &format!("known: {}: {}", name, message), format!("{:?}", got));
    }
}

/// Are these so many IDs of shard 5, in order?
pub fn are_new_ids(ids: &[i64], count: usize) -> bool {
    ids.len() == count
        && ids.windows(2).all(|pair| pair[0] < pair[1])
        && ids.iter().all(|id| *id > 1 << 60 && id >> 10 & 8191 == 5)
}
