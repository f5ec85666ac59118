package call

import "reflect"

// Size is how many bytes the texts and the lists in v take up: of all its fields,
// also of one that is added. What an interface holds is not counted; of what a
// client sends, none holds anything.
func Size(v any) int { return size(reflect.ValueOf(v)) }

func size(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		n = v.Len()
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += size(field)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			n = size(v.Elem())
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		for i := range v.Len() {
			n += size(v.Index(i))
		}
	}
	return n
}
