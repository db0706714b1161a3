const paths = {
  send: 'M4 12l16-8-6 16-3-7z',
  stop: 'M7 7h10v10H7z',
  attach: 'M8 12l6-6a3 3 0 0 1 4.5 4.5L10 19a5 5 0 0 1-7-7l8-8',
  close: 'M6 6l12 12M18 6L6 18',
  plus: 'M12 5v14M5 12h14',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  down: 'M12 4v12M7 11l5 5 5-5M5 20h14',
  agents:
    'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 19c0-3 2.500-5 5.500-5s5.500 2 5.500 5M16 11a2.500 2.500 0 1 0 0-5M17 14c2.600.3 4.500 2.200 4.500 5',
  chat: 'M4 5h16v11H9l-5 4z',
  inspect: 'M3 13h4l3-8 4 14 3-6h4',
  runs: 'M4 6h16M4 12h16M4 18h10',
  awaiting:
    'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.7.3-1 .8-1 1.700M12 16.500v.1',
  logo: 'M3 7c3-3 6-3 9 0s6 3 9 0M3 13c3-3 6-3 9 0s6 3 9 0M3 19c3-3 6-3 9 0s6 3 9 0',
} as const;

/** Decorative: screen readers skip it, because text beside it says the same. */
export function Icon({ name }: { name: keyof typeof paths }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
