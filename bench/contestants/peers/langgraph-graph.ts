/** A graph of one node, which emits the tokens as custom stream events. */
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import { emit, readAsked } from '../tokens.ts';

const State = Annotation.Root({ asked: Annotation<string>() });

export const graph = new StateGraph(State)
  .addNode('emit', ({ asked }, { writer }) => {
    return new Promise<object>((resolve) => {
      emit(
        readAsked(asked),
        (token) => writer?.(token),
        () => resolve({}),
      );
    });
  })
  .addEdge(START, 'emit')
  .addEdge('emit', END)
  .compile();
