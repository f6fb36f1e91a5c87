// Feeds files to a fuzz target where libFuzzer is not at hand: each argument is a file or a folder of files. Besides
// each file it tries all its beginnings and the file with each byte turned over, so that the seeds reach the error
// paths too.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kMaxVariants = 2048;  // of each kind and file; longer seeds are tried in even steps

/// A copy of exactly that size, so that a sanitizer sees a read beyond the end.
void feed(const std::vector<uint8_t>& bytes, size_t size) {
  const std::vector<uint8_t> exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

size_t replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t step = bytes.size() / kMaxVariants + 1;
  size_t runs = 0;
  for (size_t size = bytes.size() % step; size <= bytes.size(); size += step) {
    feed(bytes, size);
    ++runs;
  }
  for (size_t at = 0; at < bytes.size(); at += step) {
    bytes[at] ^= 0xff;
    feed(bytes, bytes.size());
    bytes[at] ^= 0xff;
    ++runs;
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  size_t files = 0;
  size_t runs = 0;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path argument = argv[i];
    if (!std::filesystem::exists(argument)) {
      std::fprintf(stderr, "%s: no such file or folder\n", argv[i]);
      return 2;
    }
    if (!std::filesystem::is_directory(argument)) {
      runs += replay(argument);
      ++files;
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
      if (entry.is_regular_file()) {
        runs += replay(entry.path());
        ++files;
      }
    }
  }
  std::printf("%zu inputs from %zu files\n", runs, files);
  return files == 0 ? 2 : 0;
}
