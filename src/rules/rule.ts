/** Execute the command, refuse it, or hold it until a person decides (C15). */
export const VERDICTS = ['allow', 'deny', 'ask'] as const
export type Verdict = (typeof VERDICTS)[number]

/** Default rules for messages that no other rule decides (C24). */
export const PRESETS = ['mesh', 'tree', 'hub', 'isolated'] as const
export type Preset = (typeof PRESETS)[number]

/**
 * All actions that need a permission (S1.19), with the default (`byDefault`) for an orc.yaml that doesn't mention them. To add
 * an action, add an entry: the config schema, the rules and `orc rules explain` derive from it.
 */
export const ACTIONS = {
  spawn_agent: { byDefault: 'deny', summary: 'start a configured agent' },
  terminate_agent: { byDefault: 'deny', summary: 'stop an agent' },
  reset_session: { byDefault: 'deny', summary: "reset an agent's session" },
  pause_session: { byDefault: 'deny', summary: "pause an agent's session" },
  resume_session: { byDefault: 'deny', summary: "resume an agent's session" },
  urgent: { byDefault: 'deny', summary: "send urgent messages, which interrupt the recipient's turn" },
  read_other_mailbox: { byDefault: 'deny', summary: 'read the mailbox of another agent' },
  take_other_mail: { byDefault: 'deny', summary: "take and acknowledge another agent's mail on its behalf" },
  update_other_status: { byDefault: 'deny', summary: 'set the status of another agent' },
  read_log: { byDefault: 'deny', summary: 'read messages between other agents' },
  declare_checks: { byDefault: 'deny', summary: 'choose the commands that check the work it delegates' },
  choose_judge: { byDefault: 'deny', summary: 'choose who judges the work it delegates' },
  query_state: { byDefault: 'allow', summary: 'query which agents are active and what they do' },
  broadcast: { byDefault: 'allow', summary: 'send one message to all agents it may write to' },
} as const satisfies Record<string, { byDefault: Verdict; summary: string }>

export type Action = keyof typeof ACTIONS
export type Permissions = Readonly<Partial<Record<Action, Verdict>>>

/** The people who decide on a held command, and how many of them must agree (C9). */
export interface Approval {
  /** Names of people. Absent: everyone who may decide. */
  readonly approvers?: readonly string[]
  readonly quorum: number
}

/** A verdict with the rule that led to it. */
export interface Decision {
  readonly verdict: Verdict
  /** The deciding rule: a path in orc.yaml such as `rules.forbid[0]`, or `built-in: …`. */
  readonly rule: string
  /** The line of that path in orc.yaml, if the rules came from a file. */
  readonly line?: number
  /** For the refused agent: shown after `Message blocked: ` (S1.12). */
  readonly reason: string
  /** With `ask`: who decides, if the rule names them. */
  readonly approval?: Approval
}

/** Names of agents; `*` means all. */
export type Who = readonly string[]

export interface Rule {
  readonly from: Who
  readonly to: Who
  readonly reason?: string
}

export interface RuleSet {
  readonly preset: Preset
  /** The agent that every message goes to or comes from. Set exactly when the preset is `hub`. */
  readonly hub?: string
  readonly allow: readonly Rule[]
  readonly forbid: readonly Rule[]
  readonly ask: readonly Rule[]
}

/** The settings of an agent that the rules use. */
export interface AgentPolicy {
  readonly name: string
  readonly parent?: string
  /** Narrows the recipients that the rules allow. */
  readonly send?: Who
  /** Narrows the senders that the rules allow. */
  readonly receive?: Who
  readonly permissions: Permissions
}

/** All rules and permissions in one value; a Config is one. Names are canonical and unique ignoring case. */
export interface Policy {
  readonly agents: readonly AgentPolicy[]
  readonly rules: RuleSet
  /** For agents that don't set the permission themselves. */
  readonly permissions: Permissions
  /** Line by path (`rules.forbid[0]`, `agents.Worker.send`), if the policy came from a file. */
  readonly lines: Readonly<Record<string, number>>
  /** Approvers by path, for rules and permissions with the verdict `ask`. */
  readonly approvals?: Readonly<Record<string, Approval>>
}

/** A token bucket of size `burst`, refilled at `perMinute` (C18). */
export interface RatePolicy {
  readonly perMinute: number
  readonly burst: number
}

/** Maximum number of turns between two agents within the window. */
export interface PingPongPolicy {
  readonly turns: number
  readonly withinMs: number
}
