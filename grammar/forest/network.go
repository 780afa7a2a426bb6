package forest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/nn"
)

// Network reads a forest: an embedding of each tree, made bottom-up, a transformer over the trees, and heads that say
// which trees to join, under which label, which to split, and how much flows through the state.
type Network struct {
	Width, Layers, Heads, FeedForward int

	Words, Labels, Preterminals int // what leaves and nodes can be; labels are nonterminals
	Positions                   int // how many places have an embedding: at least the greatest number of trees of a forest
	// Half makes matrix products of 16-bit numbers (bfloat16) inside the transformer.
	Half bool
	// Linear is attention whose cost grows with the number of trees, not with its square.
	Linear bool
	// UniformBack makes P_B uniform over the trees that can be split; otherwise it is learned.
	UniformBack bool
	// Mixes says that walks heed the behaviour's epsilon.
	Mixes bool
	// Rolled computes embeddings of trees in loops (embed_loop.go), not node after node: fewer operations, for devices
	// where each is a launch. Values and gradients are the same up to rounding.
	Rolled bool
	DType  dtypes.DType
	// Grammar, if not nil, is one under which labels are summed out: merges have none, trees are shapes, and what is
	// known of a node is what its words weigh as each symbol (see Inside). Nothing of the grammar is learned here.
	Grammar func(g *Graph) grammar.LogProbs
}

// baseWidth is the width at which the released code's scaling of readouts is 1.
const baseWidth = 128

// Paper returns the published network.
func Paper(words, labels, preterminals int) Network {
	return Network{
		Width: 512, Layers: 6, Heads: 4, FeedForward: 2048, Words: words, Labels: labels, Preterminals: preterminals,
		Positions: 22, DType: dtypes.Float32,
	}
}

// The scopes of the parts that have learning rates of their own.
const (
	EncoderScope  = "encoder"
	ForwardScope  = "forward"
	BackwardScope = "backward"
	FlowScope     = "flow"
)

// weights are the parameters of a network, in a graph or in the body of a loop.
type weights struct {
	Network
	at map[string]*Node
}

// weights looks the parameters up below scope, or makes them. All layers of the transformer start as copies of one.
func (m Network) weights(scope *model.Scope, g *Graph) *weights {
	if m.Width%m.Heads != 0 {
		panic(fmt.Errorf("forest: a width of %d cannot be divided among %d heads", m.Width, m.Heads))
	}
	w := &weights{Network: m, at: map[string]*Node{}}
	d := m.Width
	normal := func(name string, rows int) {
		w.at[EncoderScope+"/"+name] = nn.Normal(scope.At(EncoderScope), g, m.DType, name, 1/math.Sqrt(float64(d)), rows, d)
	}
	uniform := func(path, like, name string, bound float64, dims ...int) {
		from := model.JoinPath(within(scope, like).Scope(), name)
		w.at[path+"/"+name] = nn.ParamLike(within(scope, path), g, m.DType, name, from, bound, dims...)
	}
	linear := func(path, like string, in, out int, bias float64) {
		bound := 1 / math.Sqrt(float64(in))
		uniform(path, like, "weights", bound, in, out)
		uniform(path, like, "bias", bound*bias, out)
	}
	norm := func(path string) {
		uniform(path, path, "scale", 0, d)
		uniform(path, path, "shift", 0, d)
	}
	scaled := func(width int) float64 { return math.Sqrt(float64(width) / baseWidth) }

	normal("tokens", m.Words+1+m.Labels+m.Preterminals) // words, ROOT, nonterminals, preterminals
	normal("positions", m.Positions)
	for i, in := range []int{3 * d, d, d} {
		path := fmt.Sprintf("%s/tree/%d", EncoderScope, i)
		linear(path, path, in, d, 1)
	}
	for l := range m.Layers {
		at, like := fmt.Sprintf("%s/layer/%d/", EncoderScope, l), fmt.Sprintf("%s/layer/0/", EncoderScope)
		norm(at + "norm 1")
		uniform(at+"qkv", like+"qkv", "weights", math.Sqrt(6/float64(4*d)), d, 3*d)
		uniform(at+"qkv", like+"qkv", "bias", 0, 3*d)
		linear(at+"out", like+"out", d, d, 0)
		norm(at + "norm 2")
		linear(at+"wide", like+"wide", d, m.FeedForward, scaled(d))
		linear(at+"narrow", like+"narrow", m.FeedForward, d, scaled(m.FeedForward))
	}
	norm(EncoderScope + "/norm")
	for _, h := range []struct {
		path string
		out  int
	}{{positionHead, 1}, {labelHead, m.Labels}, {splitHead, 1}, {flowHead, 1}} {
		if h.path == labelHead && m.Grammar != nil {
			continue
		}
		norm(h.path + "/norm")
		linear(h.path+"/hidden", h.path+"/hidden", d, d, scaled(d))
		bound := scaled(d) / math.Sqrt(float64(d))
		uniform(h.path+"/readout", h.path+"/readout", "weights", bound, d, h.out)
		uniform(h.path+"/readout", h.path+"/readout", "bias", bound, h.out)
	}
	return w
}

// The heads.
const (
	positionHead = ForwardScope + "/position" // the logit of joining a tree with the next
	labelHead    = ForwardScope + "/label"    // logits of the label of a tree joined with the next
	splitHead    = BackwardScope + "/position"
	flowHead     = FlowScope + "/value" // summed over trees
)

// within goes down a path of scopes.
func within(scope *model.Scope, path string) *model.Scope {
	for _, name := range strings.Split(path, "/") {
		scope = scope.At("%s", name)
	}
	return scope
}

// names are those of all parameters, in order.
func (w *weights) names() []string { return slices.Sorted(maps.Keys(w.at)) }

// list returns all parameters, for with.
func (w *weights) list() (out []*Node) {
	for _, name := range w.names() {
		out = append(out, w.at[name])
	}
	return out
}

// with returns the same parameters as other nodes: those of a loop's body.
func (w *weights) with(nodes []*Node) *weights {
	out := &weights{Network: w.Network, at: map[string]*Node{}}
	for i, name := range w.names() {
		out.at[name] = nodes[i]
	}
	return out
}

func (w *weights) linear(path string, x *Node) *Node {
	y := DotGeneral(x, []int{-1}, nil, w.at[path+"/weights"], []int{0}, nil)
	return Add(y, ExpandLeftToRank(w.at[path+"/bias"], y.Rank()))
}

// product is linear, in 16 bits if the network says so.
func (w *weights) product(path string, x *Node) *Node {
	if !w.Half {
		return w.linear(path, x)
	}
	y := DotGeneral(half(x), []int{-1}, nil, half(w.at[path+"/weights"]), []int{0}, nil)
	y = ConvertDType(y, w.DType)
	return Add(y, ExpandLeftToRank(w.at[path+"/bias"], y.Rank()))
}

func half(x *Node) *Node { return ConvertDType(x, dtypes.BFloat16) }

// halved rounds the weights that product needs once and for all, where the network says so: before a loop, since its
// passes would each do it again.
func (w *weights) halved() *weights {
	if !w.Half {
		return w
	}
	nodes := w.list()
	for i, name := range w.names() {
		if strings.HasPrefix(name, EncoderScope+"/layer/") && strings.HasSuffix(name, "/weights") {
			nodes[i] = half(nodes[i])
		}
	}
	return w.with(nodes)
}

func (w *weights) norm(path string, x *Node) *Node {
	return nn.Normalize(x, OnePlus(w.at[path+"/scale"]), w.at[path+"/shift"])
}

// head evaluates one of the heads on the last axis.
func (w *weights) head(path string, x *Node) *Node {
	h := nn.ReLU(w.linear(path+"/hidden", w.norm(path+"/norm", x)))
	return w.linear(path+"/readout", DivScalar(h, float64(w.Width)/baseWidth))
}

// scalars evaluates a head that says one number of each tree, [...,d]: [...].
func (w *weights) scalars(path string, x *Node) *Node {
	y := Squeeze(w.head(path, x), -1)
	if path == splitHead && w.UniformBack {
		return ZerosLike(y)
	}
	return y
}

// tree is the embedding of nodes [...,d] of labels [...], given those of their children.
func (w *weights) tree(label, left, right *Node) *Node {
	return w.layers(w.symbol(label), left, right).out
}

// treeLayers are what the layers between children and an embedding say.
type treeLayers struct{ first, second, out *Node }

// layers computes embeddings of nodes from those of their labels and of their children.
func (w *weights) layers(label, left, right *Node) (h treeLayers) {
	h.first = nn.ELU(w.linear(EncoderScope+"/tree/0", Concatenate([]*Node{label, left, right}, -1)))
	h.second = nn.ELU(w.linear(EncoderScope+"/tree/1", h.first))
	h.out = Add(label, w.linear(EncoderScope+"/tree/2", h.second))
	return h
}

// symbol embeds labels.
func (w *weights) symbol(label *Node) *Node { return w.token(AddScalar(label, w.Words+1)) }

// token embeds words or symbols.
func (w *weights) token(id *Node) *Node {
	return Gather(w.at[EncoderScope+"/tokens"], InsertAxes(id, -1))
}

// encode is the transformer on trees [rows, places, d]. What the published code calls a pre-norm layer normalises the
// residual stream itself.
func (w *weights) encode(x *Node, attend func(q, k, v *Node) *Node) *Node {
	for l := range w.Layers {
		at := fmt.Sprintf("%s/layer/%d/", EncoderScope, l)
		u := w.norm(at+"norm 1", x)
		qkv := w.product(at+"qkv", u)
		if w.Half && !w.Linear {
			qkv = half(qkv)
		}
		q, k, v := nn.SplitHeads(qkv, w.Heads)
		u = Add(u, w.product(at+"out", ConvertDType(attend(q, k, v), w.DType)))
		u = w.norm(at+"norm 2", u)
		x = Add(u, w.product(at+"narrow", nn.ReLU(w.product(at+"wide", u))))
	}
	return w.norm(EncoderScope+"/norm", x)
}

// placed adds embeddings of the places of trees, counted from the left, as a product that is fast to differentiate.
func (w *weights) placed(x, place *Node) *Node {
	hot := OneHot(place, w.Positions, w.DType)
	return Add(x, DotGeneral(hot, []int{-1}, nil, w.at[EncoderScope+"/positions"], []int{0}, nil))
}
