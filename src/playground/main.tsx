import { render } from 'preact';
import { App } from './app/app.tsx';
import { Playground, PlaygroundProvider } from './app/playground.ts';

const root = document.getElementById('app');
if (root === null) throw new Error('index.html has no #app');
const playground = new Playground();
const stop = playground.start();
render(
  <PlaygroundProvider value={playground}>
    <App />
  </PlaygroundProvider>,
  root,
);
// With a refused token, polls would only count as more failures of this address.
playground.login.isAsked.subscribe((isAsked) => isAsked && stop());
// A page in the browser's back-forward cache would go on reading; it stops, and is reloaded when it is shown again.
addEventListener('pagehide', stop);
addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
