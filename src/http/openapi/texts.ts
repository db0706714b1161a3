/** The groups of calls, in the order in which the reference shows them. */
export const tags = [
  { name: 'agents', description: 'The agents of this server and their manifests.' },
  {
    name: 'runs',
    description: 'Executions of agents: start, follow, reply, cancel, list and delete. Every run is a log of events.',
  },
  { name: 'sessions', description: 'Conversations: the messages and the state that runs share.' },
  { name: 'webhooks', description: 'Changes of status that the server POSTs, and how their delivery went.' },
  { name: 'service', description: 'The process itself, for load balancers and monitoring.' },
];

/** What each call does, by its `operationId`. The schemas of the routes have the summaries. */
export const descriptions: Readonly<Record<string, string>> = {
  listAgents: 'Answers the manifests of the agents, ordered by name.',
  getAgent: 'Answers what the agent is called, which content it takes, and how its runs ended so far.',
  createRun:
    'Begins a run. The mode selects the answer: `sync` (default) waits and answers the Run, `stream` answers its ' +
    'events as Server-Sent Events, `async` answers 202 and the Run at once. The run is the same in every mode, and ' +
    'other clients can follow it.',
  resumeRun:
    'Sends the reply to the question in `await_request`, and continues the run. The mode selects the answer, as for a ' +
    'new run.',
  cancelRun:
    'Answers at once with the status `cancelling`. The run is `cancelled` when its agent has stopped. A run that has ' +
    'ended answers 409.',
  runAgain:
    'Makes a run of the caller’s that repeats the events up to `after`, and then goes on live. A durable agent gets the ' +
    'recorded values of its steps, and does not repeat their work. The run has a session of its own. Where the agent is not ' +
    'durable, only 0 and 1 are possible: the same input again.',
  retryRun:
    'Tries a parked run again, whose agent did not repeat what the run had done. Answers at once; the run is parked ' +
    'again where the agent still differs. A run that is not parked answers 409.',
  listRuns:
    'Filters by agent, session and status. The runs of a list have no output. `next_cursor` is the cursor of the next ' +
    'page. With `Accept: text/event-stream`, answers the state of each run and then each change of it.',
  getRun: 'Answers the Run as it is now, with all messages that are complete.',
  listRunEvents:
    'With `Accept: text/event-stream`, answers the events after the cursor and then each new one, until the run is ' +
    'final. Otherwise answers the events so far as JSON. The id of an event is its number: 1, 2, 3 and so on.',
  listDiagnostics:
    'Answers what the agent reported for the search for a fault: each call of a model, and lines of its log. What models ' +
    'were given and answered is there where the server captures content. With authentication it needs the scope `admin`.',
  createStreamTicket:
    'An EventSource sends no headers, so its address has a ticket: a permission to read the events of this run for 15 ' +
    'minutes. Ask again for a new one.',
  deleteRun: 'Deletes a final run, its events and its messages. A run that is not final answers 409; cancel it first.',
  getSession: 'Answers the URLs of its messages and of its state, oldest message first.',
  getSessionAlias: 'The same as `/sessions/{session_id}`, at the path that the published ACP clients use.',
  deleteSession:
    'Deletes a session, its messages, its state and its runs. A session with a run that is not final answers 409.',
  getResource: 'Answers a message or a state to which a session refers, as it was stored.',
  erasePrincipal:
    'Cancels the runs of the caller, and deletes its runs, sessions, messages, states, webhooks, idempotency keys and ' +
    'figures. Answers how many runs and sessions that were. Principals of a tenant own their data together.',
  listDeliveries:
    'Answers the webhooks of the caller, and what came of them. A failed one has no more attempts; replay it when its ' +
    'receiver works again.',
  listRunDeliveries: 'Answers the webhooks of a run, and what came of them.',
  replayDelivery:
    'Sends a webhook again that was delivered or has failed, with the same id and all of its attempts. A pending one ' +
    'answers 409.',
  getWebhookSecret:
    'Answers the secret that verifies the webhooks of the caller to all URLs of one origin, in the form of Standard ' +
    'Webhooks.',
  ping: 'Answers an empty object. ACP clients call it to find out whether the server is there.',
  getHealth: 'Answers while the process runs, whatever its store does.',
  getReadiness: 'Answers 503 while the store does not answer or the server stops, so that it gets no more requests.',
};
