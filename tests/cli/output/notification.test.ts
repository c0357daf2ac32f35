import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createNotifier,
  type NotificationMethod,
  notification,
  notificationMethod,
} from '../../../src/cli/output/notification.ts'
import { createSimulatedClock } from '../../fakes/simulated-clock.ts'

describe('the notification', () => {
  it.each<[Record<string, string>, NotificationMethod]>([
    [{ TERM_PROGRAM: 'iTerm.app', TERM: 'xterm-256color' }, 'osc9'],
    [{ LC_TERMINAL: 'iTerm2' }, 'osc9'],
    [{ KITTY_WINDOW_ID: '1', TERM: 'xterm-kitty' }, 'osc99'],
    [{ TERM_PROGRAM: 'WezTerm' }, 'osc777'],
    [{ TERM_PROGRAM: 'ghostty', TERM: 'xterm-ghostty' }, 'osc777'],
    [{ TERM: 'foot' }, 'osc777'],
    [{ TERM: 'rxvt-unicode-256color' }, 'osc777'],
    [{ TERM_PROGRAM: 'iTerm.app', TMUX: '/tmp/tmux-1/default,1,0' }, 'bell'],
    [{ KITTY_WINDOW_ID: '1', TERM: 'screen-256color' }, 'bell'],
    [{ TERM_PROGRAM: 'Apple_Terminal' }, 'bell'],
    [{ WT_SESSION: 'x', TERM: 'xterm-256color' }, 'bell'],
    [{}, 'bell'],
  ])('of %j is %s', (env, method) => {
    expect(notificationMethod(env)).toBe(method)
  })

  it('uses the escape sequence of each terminal', () => {
    expect(notification('osc9', 'Ada asks')).toBe('\x1b]9;Orchub: Ada asks\x1b\\\x07')
    expect(notification('osc777', 'a; b')).toBe('\x1b]777;notify;Orchub;a, b\x1b\\\x07')
    expect(notification('osc99', 'Ada asks')).toBe(
      '\x1b]99;i=orchub:d=0;Orchub\x1b\\\x1b]99;i=orchub:d=1:p=body;Ada asks\x1b\\\x07',
    )
    expect(notification('bell', 'Ada asks')).toBe('\x07')
  })

  it('lets no text end the sequence or start another', () => {
    const nasty = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.constantFrom('\x1b\\', '\x07', '\x9c', '\x1b]0;x\x07', '\u202e', ';'),
      ),
    )
    fc.assert(
      fc.property(
        nasty,
        fc.constantFrom<NotificationMethod>('osc9', 'osc99', 'osc777', 'bell'),
        (parts, method) => {
          const frame = notification(method, '')
          const text = notification(method, parts.join(''))
          const controls = (one: string) => one.replace(/[^\x00-\x1f\x7f-\x9f]/g, '')
          expect(controls(text)).toBe(controls(frame))
          expect(text.length).toBeLessThan(frame.length + 170)
          expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/)
          if (method === 'osc777') expect(text.split(';')).toHaveLength(4)
        },
      ),
    )
  })
})

describe('a burst of requests', () => {
  it('is one notification, and a second for all later requests', async () => {
    const clock = createSimulatedClock()
    const written: string[] = []
    const notifier = createNotifier({
      write: (text) => written.push(text),
      method: 'osc9',
      after: clock.after,
    })
    notifier.asked('Ada: first')
    expect(written).toHaveLength(1)
    expect(written[0]).toContain('Ada: first')
    for (let count = 0; count < 50; count++) notifier.asked(`Ben: ${count}`)
    await clock.advance(9000)
    expect(written).toHaveLength(1)
    await clock.advance(1000)
    expect(written).toHaveLength(2)
    expect(written[1]).toContain('50 requests need a person')
    await clock.advance(60_000)
    expect(written).toHaveLength(2)
    notifier.asked('Ada: again')
    expect(written).toHaveLength(3)
    notifier.close()
  })
})
