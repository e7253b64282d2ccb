//! Judging the runs of an experiment. Pure: the runs are read by `experiment/`.

mod aa_test;
mod column_figure;
mod remedies;
mod single_condition;
mod timeout_slack;

pub use aa_test::{AaTest, NamedRun, aa_test};
pub use column_figure::ColumnFigure;
pub use remedies::{Gain, GainVerdict, RemedyGains, gains};
pub use single_condition::{ConditionRow, single_condition};
pub use timeout_slack::{ExplainedShare, SlackVerdict, SleepRow, TimeoutSlack, common_setting};
