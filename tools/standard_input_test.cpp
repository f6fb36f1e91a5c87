#include "standard_input.h"

#include <memory>

#include <gtest/gtest.h>

#include "failure.h"

namespace ringbolt::tools {
namespace {

std::string read_back(const std::string& text, size_t most_bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  std::fwrite(text.data(), 1, text.size(), file.get());
  std::rewind(file.get());
  return read_input(file.get(), most_bytes);
}

TEST(StandardInput, is_taken_whole_up_to_its_bound_and_refused_beyond) {
  constexpr size_t kMostBytes = 200'000;  // more than one step reads
  EXPECT_EQ(read_back("", 0), "");
  std::string text(kMostBytes, 'x');
  text.back() = 'y';
  EXPECT_EQ(read_back(text, kMostBytes), text);
  EXPECT_THROW(read_back(text + "z", kMostBytes), UsageError);
  EXPECT_THROW(read_back("z", 0), UsageError);
}

}  // namespace
}  // namespace ringbolt::tools
