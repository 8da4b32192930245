-- Sends the bodies of a file in turn, one JSON per line, and prints what happened as JSON.
-- wrk -s wrk.lua URL -- FILE
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(arguments)
  requests = {}
  for line in io.lines(arguments[1]) do
    local headers = { ["Content-Type"] = "application/json" }
    requests[#requests + 1] = wrk.format("POST", "/v1/recommend", headers, line)
  end
  -- Threads start at different lines, so that they do not send the same query at the same time.
  place = math.floor(number * #requests / 7)
end

function request()
  place = place % #requests + 1
  return requests[place]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '{"requests": %d, "seconds": %.6f, "p50": %.1f, "p99": %.1f, "p999": %.1f, "failed": ' ..
    '{"connect": %d, "read": %d, "write": %d, "timeout": %d, "status": %d}}\n',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    errors.connect, errors.read, errors.write, errors.timeout, errors.status))
end
