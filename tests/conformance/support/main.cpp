// Every conformance program: GoogleTest's main, or the peer role in a child process.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "far.h"
#include "runtime_folder.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--peer") == 0) {
    // Two ends of one stream are opened in different ways.
    if (const char* streams = std::getenv("RINGBOLT_TEST_PEER_STREAMS")) {
      setenv("RINGBOLT_STREAMS", streams, 1);
    }
    return ringbolt::conformance::serve_as_peer(3);
  }
  testing::InitGoogleTest(&argc, argv);
  const ringbolt::conformance::RuntimeFolder folder;
  const int result = RUN_ALL_TESTS();
  ringbolt::conformance::end_shared_peer();
  return result;
}
