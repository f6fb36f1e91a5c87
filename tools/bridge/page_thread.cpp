#include "bridge/page_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "base/error.h"
#include "base/say.h"

namespace ringbolt::tools::bridge {
namespace {

constexpr std::chrono::seconds kPagePatience{8};

}  // namespace

PageThread::PageThread(const std::string& where, std::function<void()> ask)
    : end_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!end_.is_open()) {
    throw base::Error(errno, "eventfd", "--stats " + where, "look at the limit of open files (ulimit -n)");
  }
  const int listener = listen(where);
  thread_ = std::thread([this, listener, ask = std::move(ask)] {
    try {
      serve_pages(listener, end_.get(), [&] { return page(ask); });
    } catch (const std::exception& error) {
      base::say(fmt::format("ringbolt bridge: --stats: {}; connections go on\n", error.what()));
    }
  });
}

Page PageThread::page(const std::function<void()>& ask) {
  {
    const base::LockGuard lock(mutex_);
    is_asked_ = true;
  }
  ask();
  const base::LockGuard lock(mutex_);
  const bool is_told =
      answered_.wait_for(mutex_, kPagePatience, [this]() RINGBOLT_REQUIRES(mutex_) { return !is_asked_; });
  return is_told ? Page{true, page_} : Page{false, "the bridge does not answer\n"};
}

PageThread::~PageThread() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(end_.get(), &one, sizeof one);
  answer({});
  thread_.join();
}

int PageThread::listen(const std::string& where) {
  if (where.find('/') != std::string::npos) {
    unix_socket_.emplace("--stats", Place{Place::Kind::unix_socket, {}, 0, where});
    text_ = "unix:" + where;
    return unix_socket_->fd();
  }
  tcp_socket_ = listen_for_pages("--stats", where);
  text_ = page_address(tcp_socket_.get());
  return tcp_socket_.get();
}

bool PageThread::is_asked() {
  const base::LockGuard lock(mutex_);
  return is_asked_;
}

void PageThread::answer(std::string page) {
  const base::LockGuard lock(mutex_);
  page_ = std::move(page);
  is_asked_ = false;
  answered_.notify_all();
}

}  // namespace ringbolt::tools::bridge
