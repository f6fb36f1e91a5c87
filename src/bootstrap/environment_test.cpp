#include "bootstrap/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "bootstrap/jaccl_devices.h"

namespace ringbolt::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string file_of(const std::string& path, bool is_secret) {
  const std::map<std::string, std::string> files = {
      {"/devices", R"([[null, "a"], ["b", null]])"},
      {"/ring", R"([["10.0.0.1:5000"], ["10.0.0.2:5001"], ["10.0.0.3:5002"]])"},
      {"/of_one", "\n"},
      {"/bad", "[[null, 1], [1, null]]"},
      {"/secret", "from a file"},
  };
  if (!files.contains(path) || is_secret != (path == "/secret")) {
    throw base::Error(ENOENT, "open", path);
  }
  return files.at(path);
}

Config config_of(const Environment& environment) { return config_from(environment, file_of); }

std::string refusal_of(const Environment& environment) {
  try {
    config_of(environment);
    return "";
  } catch (const base::Error& error) {
    return error.what();
  }
}

std::string place_of(const Environment& environment) {
  const Config config = config_of(environment);
  return std::to_string(config.rank) + "/" + std::to_string(config.n_ranks) + " " + config.host + " " +
         std::to_string(config.port);
}

TEST(Environment, reads_every_convention) {
  EXPECT_EQ(place_of({{"RINGBOLT_RANK", "1"}, {"RINGBOLT_WORLD_SIZE", "4"}, {"RINGBOLT_COORDINATOR", "a.b:4000"}}),
            "1/4 a.b 4000");
  EXPECT_EQ(place_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}}),
            "1/4 a 29500");
  EXPECT_EQ(
      place_of({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"RINGBOLT_COORDINATOR", "[fd77::1]:9"}}),
      "2/3 fd77::1 9");
  EXPECT_EQ(place_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"RINGBOLT_COORDINATOR", "h:9"}}), "2/3 h 9");
  EXPECT_EQ(
      place_of({{"PMIX_RANK", "2"}, {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "3"}, {"RINGBOLT_COORDINATOR", "h:9"}}),
      "2/3 h 9");
  EXPECT_EQ(place_of({{"JACCL_RANK", "1"},
                      {"MLX_RANK", "7"},
                      {"JACCL_IBV_DEVICES", "/devices"},
                      {"MLX_IBV_DEVICES", "/no"},
                      {"JACCL_COORDINATOR", "[::1]:7"},
                      {"MLX_JACCL_COORDINATOR", "x"}}),
            "1/2 ::1 7");
  EXPECT_EQ(place_of({{"MLX_RANK", "1"}, {"MLX_IBV_DEVICES", "/devices"}, {"MLX_JACCL_COORDINATOR", "10.0.0.1:7"}}),
            "1/2 10.0.0.1 7");
  EXPECT_EQ(place_of({{"MLX_RANK", "2"}, {"MLX_HOSTFILE", "/ring"}}), "2/3 10.0.0.1 5000");
  EXPECT_EQ(place_of({{"RINGBOLT_RANK", "1"}, {"RINGBOLT_WORLD_SIZE", "3"}, {"MLX_HOSTFILE", "/ring"}}),
            "1/3 10.0.0.1 5000");
}

TEST(Environment, a_hostfile_that_a_shell_has_is_not_about_the_ranks_of_a_cluster) {
  Environment node = {{"RINGBOLT_CLUSTER", "ring3"}, {"RINGBOLT_NODE", "2"}, {"RINGBOLT_NODES", "3"}};
  const std::string place = place_of(node);
  EXPECT_THAT(place, HasSubstr("2/3 127.0.0.1 "));
  node["MLX_HOSTFILE"] = "/ring";
  EXPECT_EQ(place_of(node), place);
  node["RINGBOLT_RANK"] = "1";  // as `ringbolt check --rank-order` has it
  node["RINGBOLT_WORLD_SIZE"] = "3";
  EXPECT_THAT(place_of(node), HasSubstr("1/3 127.0.0.1 "));
  Environment space = node;
  space["RINGBOLT_MEETING_HOST"] = "10.76.0.1";
  EXPECT_THAT(place_of(space), HasSubstr("1/3 10.76.0.1 "));
  // A launcher in the node says where its own ranks meet.
  EXPECT_EQ(place_of({{"RINGBOLT_CLUSTER", "ring3"},
                      {"RINGBOLT_NODE", "2"},
                      {"RINGBOLT_NODES", "3"},
                      {"MLX_RANK", "1"},
                      {"MLX_HOSTFILE", "/ring"}}),
            "1/3 10.0.0.1 5000");
}

TEST(Environment, a_hostfile_of_more_ranks_is_passed_over) {
  Environment task = {{"RINGBOLT_RANK", "1"}, {"RINGBOLT_WORLD_SIZE", "2"}, {"MLX_HOSTFILE", "/ring"}};
  EXPECT_THAT(refusal_of(task), HasSubstr("set RINGBOLT_COORDINATOR"));
  task["SLURM_JOB_ID"] = "17";
  task["SLURM_JOB_NODELIST"] = "n[0-3]";
  EXPECT_THAT(place_of(task), HasSubstr("1/2 n0 "));
}

TEST(Environment, mlx_launch_names_an_empty_hostfile_to_a_single_rank) {
  EXPECT_EQ(place_of({{"MLX_RANK", "0"}, {"MLX_HOSTFILE", "/of_one"}}), "0/1 127.0.0.1 0");
  EXPECT_THAT(refusal_of({{"MLX_RANK", "1"}, {"MLX_HOSTFILE", "/of_one"}}), HasSubstr("rank 1 of 1"));
}

TEST(Environment, torchrun_itself_listens_at_its_port) {
  Environment environment = {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  environment["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(place_of(environment), "1/4 a 29501");
}

TEST(Environment, slurm_names_its_first_host) {
  const Environment environment = {
      {"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "17"}, {"SLURM_STEP_NODELIST", "n[0-3],m7"}};
  const Config config = config_of(environment);
  EXPECT_EQ(config.host, "n0");
  EXPECT_GE(config.port, 20000);
  EXPECT_LT(config.port, 30000);
  Environment other = environment;
  other["SLURM_JOB_ID"] = "18";
  EXPECT_NE(config_of(other).port, config.port);
  other["RINGBOLT_GROUP_PORT"] = "777";
  EXPECT_EQ(config_of(other).port, 777);
  EXPECT_EQ(first_host_of("host").value(), "host");
  EXPECT_EQ(first_host_of("a-1,b").value(), "a-1");
  EXPECT_EQ(first_host_of("n[08-11,3]").value(), "n08");
  EXPECT_EQ(first_host_of("r[1-2]n[7]x,z").value(), "r1n7x");
  for (const char* bad : {"", ",", "n[", "n[]", "n[a]", "n[-3]", "n m", "n\n", "[]"}) {
    EXPECT_FALSE(first_host_of(bad)) << bad;
  }
}

TEST(Environment, mpirun_in_a_job_of_slurm_meets_on_the_first_machine_of_the_job) {
  // On A, where mpirun runs, and on B, where srun has started a helper of mpirun's in a step of its own.
  Environment on_a = {{"OMPI_COMM_WORLD_RANK", "0"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"PMIX_RANK", "0"},
                      {"PMIX_NAMESPACE", "2901"},          {"SLURM_JOB_ID", "17"},
                      {"SLURM_JOB_NODELIST", "A,B"}};
  Environment on_b = on_a;
  on_b["OMPI_COMM_WORLD_RANK"] = on_b["PMIX_RANK"] = "2";
  on_b["SLURM_STEP_ID"] = "3";
  on_b["SLURM_STEP_NODELIST"] = "B";
  on_b["SLURM_PROCID"] = "0";
  on_b["SLURM_NTASKS"] = "1";
  const Config a = config_of(on_a);
  const Config b = config_of(on_b);
  EXPECT_EQ(a.host, "A");
  EXPECT_EQ(b.host, "A");
  EXPECT_EQ(a.port, b.port);
  EXPECT_EQ(b.rank, 2U);
  // Another mpirun in the same job meets elsewhere.
  on_a["PMIX_NAMESPACE"] = "2902";
  EXPECT_NE(config_of(on_a).port, b.port);
  // MPICH's says no more than that.
  const Environment mpich_a = {{"PMI_RANK", "0"},
                               {"PMI_SIZE", "4"},
                               {"MPI_LOCALNRANKS", "2"},
                               {"SLURM_JOB_ID", "17"},
                               {"SLURM_JOB_NODELIST", "A,B"}};
  Environment mpich_b = mpich_a;
  mpich_b["PMI_RANK"] = "2";
  mpich_b["SLURM_STEP_ID"] = "3";
  mpich_b["SLURM_STEP_NODELIST"] = "B";
  EXPECT_EQ(config_of(mpich_b).host, "A");
  EXPECT_EQ(config_of(mpich_b).port, config_of(mpich_a).port);
}

TEST(Environment, launchers_win_over_slurm_which_starts_them) {
  EXPECT_EQ(place_of({{"RANK", "3"},
                      {"WORLD_SIZE", "4"},
                      {"MASTER_ADDR", "a"},
                      {"MASTER_PORT", "1"},
                      {"SLURM_PROCID", "0"},
                      {"SLURM_NTASKS", "2"}}),
            "3/4 a 1");
  // With its MpiDefault, pmix or pmi2, srun says more of its one task on the machine.
  const Environment task = {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"PMIX_RANK", "1"},
                            {"PMI_RANK", "1"},     {"PMI_SIZE", "2"},     {"PMIX_NAMESPACE", "slurm.pmix.17.0"}};
  Environment torchrun = {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  torchrun.insert(task.begin(), task.end());
  EXPECT_EQ(place_of(torchrun), "3/4 a 1");
  Environment mlx = {{"MLX_RANK", "2"}, {"MLX_HOSTFILE", "/ring"}};
  mlx.insert(task.begin(), task.end());
  EXPECT_EQ(place_of(mlx), "2/3 10.0.0.1 5000");
  Environment alone = {{"RINGBOLT_COORDINATOR", "h:9"}};
  alone.insert(task.begin(), task.end());
  EXPECT_EQ(place_of(alone), "1/2 h 9");
  // Without Slurm who speaks of ranks must agree.
  EXPECT_THAT(refusal_of({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}),
              HasSubstr("contradict"));
}

TEST(Environment, emulated_nodes_meet_on_their_machine) {
  const Environment environment = {{"RINGBOLT_CLUSTER", "ring4"},
                                   {"RINGBOLT_NODE", "2"},
                                   {"RINGBOLT_NODES", "4"},
                                   {"RINGBOLT_ADDR_1", "127.77.1.2"}};
  const Config config = config_of(environment);
  EXPECT_EQ(config.rank, 2U);
  EXPECT_EQ(config.n_ranks, 4U);
  EXPECT_EQ(config.host, "127.0.0.1");
  Environment other = environment;
  other["RINGBOLT_RUNTIME_DIR"] = "/elsewhere";
  EXPECT_NE(config_of(other).port, config.port);
  // Any launcher in the node wins.
  other["RANK"] = "5";
  other["WORLD_SIZE"] = "6";
  EXPECT_EQ(config_of(other).rank, 5U);
  Environment spaces = environment;
  spaces["RINGBOLT_ADDR_1"] = "10.77.0.1";
  EXPECT_THAT(refusal_of(spaces), AllOf(HasSubstr("RINGBOLT_ADDR_1=10.77.0.1"), HasSubstr("set RINGBOLT_COORDINATOR")));
  Environment streams = environment;  // have devices and no addresses, and lead to other machines
  streams["RINGBOLT_DEVICE_1"] = "rdma_en2";
  EXPECT_EQ(config_of(streams).host, "127.0.0.1");
  streams["RINGBOLT_DEVICE_3"] = "rdma_en3";
  EXPECT_THAT(refusal_of(streams), AllOf(HasSubstr("the nodes share no machine (RINGBOLT_DEVICE_3=rdma_en3)"),
                                         HasSubstr("set RINGBOLT_COORDINATOR")));
  spaces["RINGBOLT_MEETING_HOST"] = "10.76.0.1";
  EXPECT_EQ(config_of(spaces).host, "10.76.0.1");
  EXPECT_EQ(config_of(spaces).port, config.port);
  spaces["RINGBOLT_COORDINATOR"] = "10.0.0.9:4000";
  EXPECT_EQ(config_of(spaces).host, "10.0.0.9");
}

TEST(Environment, a_node_in_a_shell_that_srun_has_started_is_no_task_of_slurm) {
  Environment shell = {{"RINGBOLT_CLUSTER", "ring4"},    {"RINGBOLT_NODE", "2"},       {"RINGBOLT_NODES", "4"},
                       {"RINGBOLT_ADDR_1", "127.7.7.1"}, {"SLURM_PROCID", "0"},        {"SLURM_NTASKS", "1"},
                       {"SLURM_STEP_NUM_TASKS", "1"},    {"SLURM_JOB_ID", "17"},       {"SLURM_STEP_ID", "0"},
                       {"SLURM_JOB_NODELIST", "n[0-3]"}, {"SLURM_STEP_NODELIST", "n0"}};
  const Environment bare = {{"RINGBOLT_CLUSTER", "ring4"}, {"RINGBOLT_NODE", "2"}, {"RINGBOLT_NODES", "4"}};
  EXPECT_THAT(place_of(shell), HasSubstr("2/4 127.0.0.1 "));
  EXPECT_EQ(place_of(shell), place_of(bare));
  // srun --mpi=pmix and --mpi=pmi2 say more of the kind.
  shell["PMIX_RANK"] = "0";
  shell["PMIX_NAMESPACE"] = "slurm.pmix.17.0";
  EXPECT_EQ(place_of(shell), place_of(bare));
  shell["PMI_RANK"] = "0";
  shell["PMI_SIZE"] = "1";
  EXPECT_EQ(place_of(shell), place_of(bare));
  // A launcher that the node has started itself still wins.
  shell["PMI_RANK"] = "5";
  shell["PMIX_RANK"] = "5";
  shell["PMI_SIZE"] = "6";
  shell["MPI_LOCALNRANKS"] = "6";
  EXPECT_THAT(place_of(shell), HasSubstr("5/6 127.0.0.1 "));
  // What is half said is not made up for by Slurm's half.
  Environment half = {{"RINGBOLT_NODE", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
  EXPECT_THAT(refusal_of(half), AllOf(HasSubstr("RINGBOLT_NODE=2"), HasSubstr("find the number of ranks")));
}

TEST(Environment, mpirun_on_one_machine_needs_no_address) {
  const Environment environment = {{"OMPI_COMM_WORLD_RANK", "1"},
                                   {"OMPI_COMM_WORLD_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                   {"PMIX_NAMESPACE", "job-7"}};
  EXPECT_EQ(config_of(environment).host, "127.0.0.1");
  Environment spread = environment;
  spread["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  EXPECT_THAT(refusal_of(spread), HasSubstr("set RINGBOLT_COORDINATOR=HOST:PORT"));
}

TEST(Environment, bad_numbers_name_variable_and_value) {
  for (const char* bad : {"", " 1", "1 ", "-1", "+1", "0x1", "1.0", "one", "1024", "99999999999999999999"}) {
    const std::string text =
        refusal_of({{"RANK", bad}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}});
    EXPECT_THAT(text, HasSubstr(std::string("RANK=") + bad + ": read the number")) << bad;
  }
  EXPECT_THAT(refusal_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), AllOf(HasSubstr("RANK=4"), HasSubstr("WORLD_SIZE=4")));
  EXPECT_THAT(refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(refusal_of({{"RANK", "0\n\x1b[31m"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=0??[31m"));
}

TEST(Environment, missing_values_are_named) {
  EXPECT_THAT(refusal_of({}), AllOf(HasSubstr("find the rank"), HasSubstr("torchrun")));
  EXPECT_THAT(refusal_of({{"RANK", "1"}}), AllOf(HasSubstr("RANK=1"), HasSubstr("find the number of ranks")));
  EXPECT_THAT(refusal_of({{"RINGBOLT_RANK", "1"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("RINGBOLT_WORLD_SIZE, both or neither"));
  EXPECT_THAT(refusal_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), HasSubstr("find rank 0"));
  EXPECT_THAT(refusal_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}), HasSubstr("MASTER_PORT=1"));
  EXPECT_EQ(refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "");  // alone one needs to meet nobody
}

TEST(Environment, contradictions_name_both) {
  EXPECT_THAT(refusal_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}}),
              AllOf(HasSubstr("RANK=1 and OMPI_COMM_WORLD_RANK=2"), HasSubstr("contradict")));
  EXPECT_THAT(refusal_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MLX_RANK", "1"}, {"MLX_IBV_DEVICES", "/devices"}}),
              HasSubstr("WORLD_SIZE=4 and MLX_IBV_DEVICES=/devices"));
  // What you say yourself is the last word.
  EXPECT_EQ(place_of({{"RINGBOLT_RANK", "0"},
                      {"RINGBOLT_WORLD_SIZE", "2"},
                      {"RINGBOLT_COORDINATOR", "h:1"},
                      {"RANK", "1"},
                      {"OMPI_COMM_WORLD_RANK", "2"}}),
            "0/2 h 1");
}

TEST(Environment, bad_files_name_variable_and_reason) {
  EXPECT_THAT(refusal_of({{"MLX_RANK", "1"}, {"MLX_IBV_DEVICES", "/none"}}),
              AllOf(HasSubstr("MLX_IBV_DEVICES=/none"), HasSubstr("No such file")));
  EXPECT_THAT(refusal_of({{"MLX_RANK", "1"}, {"MLX_IBV_DEVICES", "/bad"}}),
              AllOf(HasSubstr("MLX_IBV_DEVICES=/bad"), HasSubstr("[0][1]: is neither null")));
}

TEST(Environment, reads_settings) {
  Environment environment = {
      {"RINGBOLT_RANK", "0"},  {"RINGBOLT_WORLD_SIZE", "2"}, {"RINGBOLT_COORDINATOR", "h:1"},  {"RINGBOLT_SECRET", "s"},
      {"RINGBOLT_GROUP", "g"}, {"RINGBOLT_BIND", "::1"},     {"RINGBOLT_JOIN_TIMEOUT_MS", "5"}};
  const Config config = config_of(environment);
  EXPECT_EQ(config.secret + config.group + config.bind_address, "sg::1");
  EXPECT_EQ(config.timeout_ms, 5U);
  environment["RINGBOLT_SECRET_FILE"] = "/secret";
  EXPECT_THAT(refusal_of(environment), HasSubstr("RINGBOLT_SECRET and RINGBOLT_SECRET_FILE"));
  environment.erase("RINGBOLT_SECRET");
  EXPECT_EQ(config_of(environment).secret, "from a file");
  environment["RINGBOLT_SECRET_FILE"] = "/none";
  EXPECT_THAT(refusal_of(environment), HasSubstr("RINGBOLT_SECRET_FILE=/none"));
  environment.erase("RINGBOLT_SECRET_FILE");
  environment["RINGBOLT_SECRET"] = "";
  EXPECT_THAT(refusal_of(environment), HasSubstr("the secret is empty"));
}

TEST(Environment, hosts_are_read_with_care) {
  const auto torchrun = [](const std::string& host) {
    return Environment{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", host}, {"MASTER_PORT", "29500"}};
  };
  EXPECT_EQ(place_of(torchrun("[fd77::1]")), "1/4 fd77::1 29500");
  EXPECT_EQ(place_of(torchrun("fd77::1")), "1/4 fd77::1 29500");
  EXPECT_EQ(place_of(torchrun("fe80::1%eth0")), "1/4 fe80::1%eth0 29500");
  for (const char* bad : {"node 0", " node0", "node0\n", "[]", "[fd77::1", "node/0", "[node 0]"}) {
    EXPECT_THAT(refusal_of(torchrun(bad)),
                AllOf(HasSubstr("MASTER_ADDR="), HasSubstr("is neither a name nor an address")))
        << bad;
  }
  EXPECT_THAT(refusal_of(torchrun("fe80::1")), HasSubstr("append this machine's interface to it, fe80::1%eth0"));
  Environment environment = {{"RINGBOLT_RANK", "0"}, {"RINGBOLT_WORLD_SIZE", "2"}};
  environment["RINGBOLT_COORDINATOR"] = "[FE80::1]:4";
  EXPECT_THAT(refusal_of(environment), AllOf(HasSubstr("RINGBOLT_COORDINATOR="), HasSubstr("FE80::1%eth0")));
  for (const char* bad : {"256.1.1.1", "10.0.0", "1"}) {
    environment["RINGBOLT_COORDINATOR"] = std::string(bad) + ":4000";
    EXPECT_THAT(refusal_of(environment), HasSubstr("is no IPv4 address"));
  }
  environment["RINGBOLT_COORDINATOR"] = "h:4";
  environment["RINGBOLT_BIND"] = "[::1]";
  EXPECT_EQ(config_of(environment).bind_address, "::1");
  environment["RINGBOLT_BIND"] = "10.0.0.1:4";
  EXPECT_THAT(refusal_of(environment), HasSubstr("RINGBOLT_BIND=10.0.0.1:4: find the place to meet"));
  environment["RINGBOLT_BIND"] = "here, there";
  EXPECT_THAT(refusal_of(environment), HasSubstr("RINGBOLT_BIND=here, there"));
}

TEST(Environment, places_are_read_with_care) {
  EXPECT_EQ(parse_host_port("[fe80::1%eth0]:65535").value(), (HostPort{"fe80::1%eth0", 65535}));
  for (const char* bad : {"", ":", "a", "a:", ":1", "a:0", "a:65536", "a:1x", "::1:4000", "[::1]", "[::1", "[]:1",
                          "a b:1", "[a b]:1", "a:-1", "[zz]:4000", "[10.0.0.1]:4000"}) {
    EXPECT_FALSE(parse_host_port(bad)) << bad;
  }
  EXPECT_EQ(to_text(HostPort{"::1", 5}), "[::1]:5");
}

TEST(CheckOfConfig, wants_an_interface_that_this_machine_has) {
  Config config;
  config.rank = 1;
  config.n_ranks = 2;
  config.port = 4000;
  for (const char* good : {"fe80::1%lo", "fe80::1%1"}) {
    config.host = good;
    EXPECT_NO_THROW(check(config)) << good;
  }
  for (const char* bad : {"fe80::1%nosuch", "fe80::1%1x", "fe80::1%"}) {
    config.host = bad;
    EXPECT_THROW(check(config), base::Error) << bad;
  }
}

TEST(ReadFile, keeps_secrets) {
  std::string folder = "/tmp/ringbolt-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/secret";
  std::ofstream(path) << "position 1\n";
  ::chmod(path.c_str(), 0604);
  EXPECT_THROW(read_file(path, true), base::Error);
  EXPECT_EQ(read_file(path, false), "position 1\n");
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(read_file(path, true), "position 1");
  std::ofstream(path) << "\n";
  EXPECT_THROW(read_file(path, true), base::Error);
  EXPECT_THROW(read_file(folder, false), base::Error);
  std::ofstream(path) << std::string(kMaxMlxFileBytes, 'x');
  EXPECT_EQ(read_file(path, false).size(), kMaxMlxFileBytes);
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_THROW(read_file(path, false), base::Error);
  ::unlink(path.c_str());
  ::rmdir(folder.c_str());
}

}  // namespace
}  // namespace ringbolt::bootstrap
