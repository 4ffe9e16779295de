"use strict";
// Hands a trace to Perfetto's page in a window of its own, as Perfetto documents it: PING until PONG, then the trace.
// The trace goes from window to window inside the browser; the network is used for Perfetto's page only.
window.openInPerfetto = (title, trace, say) => {
  const VIEWER = "https://ui.perfetto.dev", EVERY = 200, PATIENCE = 20000;  // milliseconds
  const viewer = window.open(VIEWER);
  if (!viewer) return say("The browser blocked the window. Allow this page to open windows, and try again.");
  const until = Date.now() + PATIENCE;
  const timer = setInterval(() => {
    if (viewer.closed) end("Perfetto's window was closed.");
    else if (Date.now() > until) end("Perfetto did not answer: it needs a network.");
    else viewer.postMessage("PING", "*");  // to whatever page is there; the trace goes to Perfetto's only
  }, EVERY);
  function end(text) {
    clearInterval(timer);
    window.removeEventListener("message", answered);
    say(text);
  }
  async function answered(event) {
    if (event.source !== viewer || event.origin !== VIEWER || event.data !== "PONG") return;
    end("Perfetto is ready, the trace is being prepared …");
    try {
      viewer.postMessage({ perfetto: { title, buffer: await bytes } }, VIEWER);
      say("Perfetto has the trace.");
    } catch (error) {
      say(error.message);
    }
  }
  window.addEventListener("message", answered);
  say("Waiting for Perfetto …");
  const bytes = trace();
  bytes.catch((error) => end(error.message));
};
