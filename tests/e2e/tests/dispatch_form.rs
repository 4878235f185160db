//! Forms of dispatches: the packet of the HSA specification, and AMD's extended dispatch of clusters.

use tracer_core::tables::{Fact, Form};
use tracer_e2e::{
    compare,
    scenario::{Scenario, each_release},
};

#[test]
fn extended_dispatches_equal_the_packets_that_the_device_took() {
    let scenarios = each_release(0).map(|(suite, asic)| Scenario::new(suite, asic, &["clusters", "-n", "40"]));
    compare::each(scenarios, |run, _| {
        let forms = |wanted: Form| {
            let of = |fact: &&Fact| matches!(fact, Fact::Dispatch(row) if row.form == Some(wanted) && row.grid == [640, 1, 1]);
            run.facts.iter().filter(of).count()
        };
        assert_eq!((forms(Form::ExtKernel), forms(Form::Kernel)), (40, 20));
    });
}
