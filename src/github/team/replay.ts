import { randomUUID } from 'node:crypto'

const REPLAY = 'replay-'

/** Of a payload that somebody here gave: GitHub did not sign it. */
export function replayId(): string {
  return `${REPLAY}${randomUUID()}`
}

export function isReplay(delivery: string): boolean {
  return delivery.startsWith(REPLAY)
}
