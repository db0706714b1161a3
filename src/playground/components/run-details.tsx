// One file for the tabs that few visits open, so that the page loads their code at once and only then.
export { LogLines } from './log-lines.tsx';
export { ModelCalls } from './model-calls.tsx';
export { SessionView } from './session-view.tsx';
export { ToolList } from './tool-list.tsx';
