use super::*;

/// Returns the steps of calls as text: `+name` and `-name@time`.
fn steps(calls: &[(&'static str, u64, Option<u64>, Option<Call>)], end: u64) -> String {
    let mut nest = Nest::default();
    let mut steps = Vec::new();
    let mut step = |step: Step<'_, &'static str>| {
        steps.push(match step {
            Step::Begin(slice, _) => format!("+{}", slice.payload),
            Step::End(slice, at) => format!("-{}@{at}", slice.payload),
        });
        Ok::<(), ()>(())
    };
    for &(payload, begin, end, call) in calls {
        let slice = Slice {
            begin,
            end,
            call,
            payload,
        };
        nest.push(slice, &mut step).unwrap();
    }
    nest.finish(end, &mut step).unwrap();
    steps.join(" ")
}

fn call(number: u64, parent: Option<u64>) -> Option<Call> {
    Some(Call { number, parent })
}

#[test]
fn calls_end_before_the_calls_around_them() {
    let calls = [
        ("launch", 10, Some(100), call(1, None)),
        ("ioctl", 20, Some(30), None),
        ("inner", 40, Some(100), call(2, Some(1))),
        ("next", 100, Some(110), call(3, None)),
    ];
    assert_eq!(
        steps(&calls, 200),
        "+launch +ioctl -ioctl@30 +inner -inner@100 -launch@100 +next -next@110"
    );
}

#[test]
fn of_calls_with_the_same_entry_the_longest_is_outside() {
    let calls = [
        ("ioctl", 10, Some(20), None),
        ("call", 10, Some(30), call(1, None)),
        ("empty", 30, Some(30), call(2, Some(1))),
    ];
    assert_eq!(steps(&calls, 50), "+call +ioctl -ioctl@20 +empty -empty@30 -call@30");
}

#[test]
fn a_call_that_was_left_ends_when_the_next_one_shows_it() {
    let calls = [
        ("outer", 0, Some(90), call(1, None)),
        ("left", 10, None, call(2, Some(1))),
        ("in it", 20, Some(30), call(3, Some(2))),
        ("sibling", 40, Some(50), call(4, Some(1))),
        ("left too", 60, None, call(5, Some(1))),
    ];
    assert_eq!(
        steps(&calls, 100),
        "+outer +left +in it -in it@30 -left@40 +sibling -sibling@50 +left too -left too@90 -outer@90"
    );
}

#[test]
fn what_never_ends_is_open_to_the_end_of_the_trace() {
    let calls = [("wait", 10, None, call(7, Some(3))), ("ioctl", 20, Some(25), None)];
    assert_eq!(steps(&calls, 99), "+wait +ioctl -ioctl@25 -wait@99");
    // A window may end before a call begins.
    assert_eq!(steps(&calls[..1], 5), "+wait -wait@10");
}
