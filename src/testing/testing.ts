export { type CutOptions, type Cuts, cutEverywhere, Effects } from './cut-everywhere.ts';
export type { Answers, EngineTools, Followed, Scene } from './engine.ts';
export {
  type FakeAnswer,
  type FakeDelta,
  type FakeModel,
  type FakeModelMessage,
  type FakeModelRequest,
  fakeModel,
} from './fake-model.ts';
export { type RecordedLog, replayLog, toMatchLog } from './logs.ts';
export { type RanAgent, type RunAgentOptions, runAgent } from './run-agent.ts';
