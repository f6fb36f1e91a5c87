// GoogleTest's main, in a runtime folder of the test's own: no other process of the user is met there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  char folder[] = "/tmp/rbc-XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    return 1;
  }
  setenv("RINGBOLT_RUNTIME_DIR", folder, 1);
  unsetenv("RINGBOLT_CLUSTER");
  unsetenv("RINGBOLT_NODE");
  if (std::getenv("RINGBOLT_LOOPBACK") == nullptr) {  // else tests/conformance/over_network.sh has set both
    unsetenv("RINGBOLT_NETDEVS");
  }
  const int result = RUN_ALL_TESTS();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}
