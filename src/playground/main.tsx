import { render } from 'preact';
import { App } from './components/app.tsx';
import { Playground, PlaygroundProvider } from './playground.ts';

const root = document.getElementById('app');
if (root === null) throw new Error('index.html has no #app');
const playground = new Playground();
const end = playground.begin();
render(
  <PlaygroundProvider value={playground}>
    <App />
  </PlaygroundProvider>,
  root,
);
// Pages that the browser keeps for "back" would go on reading; they are loaded again instead.
addEventListener('pagehide', end);
addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
