#include "faulty_device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "runtime_folder.h"

namespace ringbolt::faults {

const char* const kChances[4] = {"0.01%", "0.1%", "1%", "10%"};

namespace {

int run_child(const std::string& plan, const std::function<void()>& body) {
  setenv("RINGBOLT_FAULTS", plan.c_str(), 1);
  setenv("RINGBOLT_TEST_GID_INDEX", "0", 1);
  setenv("RINGBOLT_LOG", "debug", 1);
  const conformance::RuntimeFolder folder;
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  return testing::Test::HasFailure() ? 1 : 0;
}

}  // namespace

std::string with_faults(const std::string& plan, const std::function<void()>& body) {
  if (testing::Test::HasFailure()) {
    return "";  // a child would take it for its own
  }
  const int said = memfd_create("said", MFD_CLOEXEC);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(said, STDERR_FILENO);
    std::exit(run_child(plan, body));  // the counts come when the device is closed, or at the exit
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::string text;
  std::array<char, 4096> piece{};
  lseek(said, 0, SEEK_SET);
  for (ssize_t got = 0; (got = read(said, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<size_t>(got));
  }
  close(said);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status << " under " << plan << "\n"
                                                             << text;
  return text;
}

unsigned long count_in(const std::string& text, const std::string& line, const std::string& word) {
  const size_t begin = text.rfind(line);
  if (begin == std::string::npos) {
    return 0;
  }
  const std::string found = text.substr(begin, text.find('\n', begin) - begin);
  const size_t at = found.find(" " + word);
  const size_t number = at == std::string::npos ? at : found.find_last_of(' ', at - 1);
  return number == std::string::npos ? 0 : std::strtoul(found.c_str() + number, nullptr, 10);
}

}  // namespace ringbolt::faults
