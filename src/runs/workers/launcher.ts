import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import type { LaunchOrder, LaunchReport } from './spawn-commands.ts'

/** How a command ended. `launcher_lost`: it may still be running, but nothing will report its end. */
export type LaunchEnd = Exclude<LaunchReport, { type: 'started' }> | { readonly type: 'launcher_lost' }

export interface LaunchPort {
  started(pid: number): void
  /** Called exactly once, and last. */
  ended(end: LaunchEnd): void
}

export interface Launcher {
  launch(order: Omit<LaunchOrder, 'id'>, port: LaunchPort): void
  /** Ends the launcher. Commands that it has started keep running. */
  close(): void
}

const PROGRAM = join(
  import.meta.dirname,
  import.meta.url.endsWith('.ts') ? 'spawn-commands.ts' : 'spawn-commands.js',
)

/** Starts commands through spawn-commands.ts, which it forks for the first command and again if it has died. */
export function createLauncher(): Launcher {
  let running: { child: ChildProcess; ports: Map<number, LaunchPort> } | undefined
  let lastId = 0

  function open() {
    const child = fork(PROGRAM, [], {
      // Ctrl-C in the service's terminal must not end it before the service has stopped its commands.
      detached: true,
      // Each order has the environment of its command. The launcher needs none, least of all the service's secrets.
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const ports = new Map<number, LaunchPort>()
    const end = (id: number, how: LaunchEnd) => {
      const port = ports.get(id)
      ports.delete(id)
      port?.ended(how)
    }
    function lose() {
      if (running?.child === child) running = undefined
      for (const id of ports.keys()) end(id, { type: 'launcher_lost' })
    }
    child.on('message', (report: LaunchReport) => {
      if (report.type === 'started') ports.get(report.id)?.started(report.pid)
      else end(report.id, report)
    })
    child.on('error', lose)
    child.on('exit', lose)
    // Let the service exit without waiting for it.
    child.unref()
    child.channel?.unref()
    return { child, ports }
  }

  return {
    launch(order, port) {
      running ??= open()
      const id = ++lastId
      running.ports.set(id, port)
      // If this fails, the launcher has died, which `exit` reports. If the fork failed, there is no `send`, and `error` follows.
      running.child.send?.({ id, ...order } satisfies LaunchOrder, () => {})
    },
    close() {
      running?.child.disconnect()
    },
  }
}
