/** The model of tests is the one that agents' authors have. */
export {
  type FakeAnswer as Answer,
  type FakeModel as Llm,
  type FakeModelRequest as LlmRequest,
  fakeModel as startLlm,
} from 'rivulet/testing';
