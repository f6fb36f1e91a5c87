# Flags of every target: the warnings that CONTRIBUTING.md asks for and the chosen instrumentation.
add_library(ringbolt_flags INTERFACE)
target_compile_options(ringbolt_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wsign-conversion>
  -Werror -fno-omit-frame-pointer)
target_include_directories(ringbolt_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(RINGBOLT_SANITIZE)
  target_compile_options(ringbolt_flags INTERFACE -fsanitize=${RINGBOLT_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(ringbolt_flags INTERFACE -fsanitize=${RINGBOLT_SANITIZE})
  if(RINGBOLT_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(ringbolt_flags INTERFACE -Wno-tsan)  # it warns of every fence: it does not model them
  endif()
endif()
if(RINGBOLT_COVERAGE)
  target_compile_options(ringbolt_flags INTERFACE --coverage)
  target_link_options(ringbolt_flags INTERFACE --coverage)
endif()

# Test programs are compiled once and run for seconds: without optimization that takes less than half the time. What they
# test is optimized as always. Sanitizers and fuzzers have flags of their own.
set(RINGBOLT_TEST_OPTIONS "")
if(NOT RINGBOLT_SANITIZE AND NOT RINGBOLT_FUZZ AND NOT RINGBOLT_COVERAGE)
  set(RINGBOLT_TEST_OPTIONS -O0 -g1)
endif()
