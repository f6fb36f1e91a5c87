#include "program_start.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace ringbolt::tools {
namespace {

bool is_startable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string found_path(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    return program;
  }
  const char* folders = std::getenv("PATH");
  std::istringstream all(folders == nullptr ? "/bin:/usr/bin" : folders);
  for (std::string folder; std::getline(all, folder, ':');) {
    if (std::string path = (folder.empty() ? "." : folder) + "/" + program; is_startable(path)) {
      return path;
    }
  }
  return "";
}

/// By its first line, as far as one looks. An empty file is a text.
bool is_text(const std::string& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 256> bytes;
  const ssize_t got = file.is_open() ? ::read(file.get(), bytes.data(), bytes.size()) : -1;
  if (got < 0) {
    return true;  // that nobody may read it is for the shell to say
  }
  const std::string_view all(bytes.data(), static_cast<size_t>(got));
  return std::ranges::none_of(all.substr(0, all.find('\n')), [](char one) {
    const auto code = static_cast<unsigned char>(one);
    constexpr unsigned char kDelete = 0x7f;
    return (code < ' ' && std::string_view("\t\v\f\r\x1b").find(one) == std::string_view::npos) || code == kDelete;
  });
}

}  // namespace

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> array;
  for (std::string& text : texts) {
    array.push_back(text.data());
  }
  array.push_back(nullptr);
  return array;
}

ProgramStart::ProgramStart(std::vector<std::string> words)
    : words_(std::move(words)), path_(found_path(words_.front())), is_text_(is_text(path_)) {
  shell_words_ = {"sh", path_};
  shell_words_.insert(shell_words_.end(), words_.begin() + 1, words_.end());
  command_ = pointers_to(words_);
  shell_command_ = pointers_to(shell_words_);
}

void ProgramStart::become(char* const* environment) const {
  if (path_.empty()) {
    ::execvpe(command_.front(), command_.data(), environment);
    return;
  }
  ::execve(path_.c_str(), command_.data(), environment);
  if (errno == ENOEXEC && is_text_) {
    ::execve("/bin/sh", shell_command_.data(), environment);
  }
}

}  // namespace ringbolt::tools
