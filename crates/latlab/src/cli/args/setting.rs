use clap::Args;

/// What is set on the hosts for the time of the run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is set meanwhile")]
pub struct SettingArgs {
    /// Set KNOB[:DEV][@WHERE]=VALUE while measuring, restored afterwards; repeatable [default: none]
    ///
    /// governor=performance, cpu-dma-latency=0, timer-slack=1ns,
    /// idle-states=none|max-us:N|off:NAME,…, irq-affinity=IRQ:CPUS,
    /// rt-runtime=-1, busy-poll=50us, coalesce=rx-usecs:0,…,
    /// offload=tx-checksum:off,gro:off,…, mtu=BYTES, socket-buffer=BYTES.
    /// WHERE is local, peer or both. coalesce, offload and mtu act on the
    /// interface of the measured path, or on DEV. VALUE as-found leaves a
    /// knob as it is.
    #[arg(long, value_name = "KNOB=VALUE", hide_short_help = true, verbatim_doc_comment)]
    pub set: Vec<String>,
}
