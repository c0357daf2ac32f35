/** Paths on a 16 × 16 grid, drawn in the text colour. */
const PATHS = {
  team: 'M8 2.5a2 2 0 1 1 0 4 2 2 0 0 1 0-4ZM3.5 9.5a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Zm9 0a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5ZM6.8 6.3 4.4 9.6m4.8-3.3 2.4 3.3',
  inbox: 'M2.5 9.5 4.2 3h7.6l1.7 6.5v3.5h-11V9.5Zm0 0h3l1 1.8h3l1-1.8h3',
  tasks: 'M3 3.5h3v3H3zM3 9.5h3v3H3zM8.5 5H13M8.5 11H13',
  conversations: 'M4 2.5v11m8-11v11M4 5.5h8m0 0L9.8 4M12 5.5 9.8 7M12 10.5H4m0 0L6.2 9M4 10.5 6.2 12',
  runs: 'M3 8h3m4-4.5h3M10 12.5h3M6 8c2.5 0 1.5-4.5 4-4.5M6 8c2.5 0 1.5 4.5 4 4.5',
  github:
    'M5 3a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3Zm0 7a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3Zm6-6a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3ZM5 6v4m6-3c0 2.5-3 2.4-4.6 3.6',
  rules: 'M2.5 2.5h11v11h-11zM2.5 6.2h11m-11 3.6h11M6.2 2.5v11m3.6-11v11',
  audit: 'M3.5 2.5h6l3 3v8h-9v-11Zm2.5 5h4M6 10h4',
  metrics: 'M2.5 13.5h11M4 11V8m3 3V4.5M10 11V6.5m3 4.5V3',
  flag: 'M4 13.5v-11m0 .5h8l-2 2.8 2 2.7H4',
  history: 'M3 8a5 5 0 1 0 1.6-3.7M3 3v2.5h2.5M8 5.5V8l2 1.2',
  stop: 'M5 2.5h6l3 3v5l-3 3H5l-3-3v-5l3-3ZM6 6l4 4m0-4-4 4',
  go: 'M5 3.5v9l7-4.5-7-4.5Z',
  compose: 'M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2L3 13Z',
  mail: 'M2.5 4h11v8h-11V4Zm0 .5L8 9l5.5-4.5',
  close: 'M4 4l8 8m0-8-8 8',
  check: 'M3 8.5 6.5 12 13 4.5',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  theme: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm0 0v11M8 5h2.2M8 8h3.5M8 11h2.2',
  bell: 'M4 11V7a4 4 0 0 1 8 0v4l1 1H3l1-1Zm3 2.2h2',
  keyboard: 'M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.5h6',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}
