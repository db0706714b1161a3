import { useEffect, useRef } from 'preact/hooks';
import { usePlayground } from '../playground.ts';

/** Asks for a key or token where the server has refused a request without a valid one. */
export function TokenPrompt() {
  const { login } = usePlayground();
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const isAsked = login.isAsked.value;
  useEffect(() => {
    if (isAsked) dialog.current?.showModal();
  }, [isAsked]);
  if (!isAsked) return null;
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = input.current?.value ?? '';
    if (token.trim() !== '') login.use(token);
  };
  return (
    <dialog ref={dialog} class="token" aria-labelledby="token-title" onCancel={(event) => event.preventDefault()}>
      <form onSubmit={submit}>
        <h2 id="token-title">{login.token === '' ? 'This server needs a token' : 'The server refused the token'}</h2>
        <p>Enter an API key or an access token. The page keeps it until this tab is closed.</p>
        <label>
          Token
          <input ref={input} type="password" name="token" autocomplete="off" spellcheck={false} required />
        </label>
        <div class="buttons">
          <button type="submit" class="primary">
            Use token
          </button>
        </div>
      </form>
    </dialog>
  );
}
