import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/**
 * A component whose code is loaded when it is first shown, for what few visits show. Nothing is shown until then, and
 * without a connection.
 */
export function lazily<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return (props) => {
    const [Loaded, setLoaded] = useState(() => loaded);
    useEffect(() => {
      if (Loaded !== undefined) return;
      load().then(
        (component) => {
          loaded = component;
          setLoaded(() => component);
        },
        () => {},
      );
    }, []);
    return Loaded === undefined ? null : <Loaded {...props} />;
  };
}
