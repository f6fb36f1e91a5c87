#pragma once

#include <functional>
#include <string>

#include "agent/agent.h"
#include "cli/help.h"
#include "commands.h"
#include "host_node.h"

namespace CLI {
class App;
}

namespace ringbolt::tools {

/// What the command line asks for: which subcommand, and its options.
struct Request {
  UpOptions up;
  DownOptions down;
  RebootOptions reboot;
  ListOptions list;
  RunOptions run;
  ExecOptions exec;
  EnvOptions env;
  HostfileOptions hostfile;
  CableOptions cable;
  FaultOptions fault;
  DecodeOptions decode;
  TraceOptions trace;
  MetricsOptions metrics;
  MatrixOptions matrix;
  MapOptions map;
  PerfOptions perf;
  PlanOptions plan;
  VerifyOptions verify;
  CheckOptions check;
  BenchOptions bench;
  NcclOptions nccl;
  BridgeOptions bridge;
  DoctorOptions doctor;
  ProbeOptions probe;
  AgentOptions agent;
  RelayProbeOptions relay_probe;
  HostOptions host;
  HelpOptions help;
  std::function<int()> action;
  bool takes_command = false;  ///< words after "--" belong to it
};

// Each adds subcommands that fill `request`, which outlives `app`.

/// Those that make clusters and change them: up, down, reboot, status, devices, hostfile, cut,
/// heal, fault; and `host`, hidden.
void define_cluster_commands(CLI::App& app, Request& request);
/// Those that run something on a cluster or look into what it did: run, exec, env, matrix, metrics, decode; and
/// `probe`, hidden.
void define_program_commands(CLI::App& app, Request& request);

/// The command of each folder.
namespace perf {
void define_perf(CLI::App& app, Request& request);
}
namespace plan {
void define_plan(CLI::App& app, Request& request);
}
namespace verify {
void define_verify(CLI::App& app, Request& request);
}
namespace check {
void define_check(CLI::App& app, Request& request);
}
namespace bench {
void define_bench(CLI::App& app, Request& request);
}
namespace nccl_command {
void define_nccl(CLI::App& app, Request& request);
}
namespace bridge {
void define_bridge(CLI::App& app, Request& request);
}
namespace doctor {
void define_doctor(CLI::App& app, Request& request);
}

// What several of them have.
void add_cluster(CLI::App* command, std::string& cluster);
void add_json(CLI::App* command, bool& is_json);
/// What ranks are told by who starts them, hidden.
void add_rank(CLI::App* command, RankOptions& options);
/// --fail-if of commands that measure: thresholds.h.
void add_thresholds(CLI::App* command, std::vector<std::string>& texts);

}  // namespace ringbolt::tools
